// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package updatestatus keeps the UpdateStatus of the cluster up to date: it gathers the facts from
// the cache, adds the answers of the update informers, has package updatestatus compute the status,
// and writes it when it changed.
//
// A pass makes no request to the API server unless it has something to write, or a node is being drained. A restart, or
// another leader, continues from the published status: times of first observation are kept, and nothing is resolved
// that was not observed to be.
//
// The package judges nothing itself.
package updatestatus
