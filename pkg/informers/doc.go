// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informers has the built-in update informers: pure functions that turn facts about a cluster
// into findings about the update that is in progress, and Gather, which reads these facts.
//
// The Update Status Controller gathers them from its cache, the CLI from live reads or from a dump.
// An informer is one file with one function and one line in the table of All. It reads nothing, keeps
// no state, and knows no insight: what becomes of a finding is decided by its callers.
package informers
