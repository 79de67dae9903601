// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delivery builds the ManifestWorks that upgrade a managed cluster, and reads what its work agent
// reports about them. The feedback rules of the works are beside the functions that read their values.
//
// All functions are pure: the same run and the same ManagedClustersUpgrade lead to the same work. The package decides
// nothing about a cluster. Missing or ambiguous feedback is marked, as is feedback of another type, too long, or about an
// older generation of the work. It never counts as good news; callers decide how long a state lasts, and what follows.
package delivery
