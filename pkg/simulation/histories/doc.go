// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package histories runs random upgrade histories: seeded sequences of user actions, actions of
// other clients, and failures, with the real controllers and runbooks on a simulated cluster. It
// checks the invariants after each stored change. The checks read only the objects of the API
// server and share no code with what they check.
//
// There are histories of UpgradeConfigs, and histories of UpgradeJobs with their hooks, delayed
// pools, and suspension windows. Both use the same cluster, faults, and checks of the operator's
// requests.
//
// There are also histories of fleets: ManagedClustersUpgrades on a hub with three to six simulated
// clusters, whose agents handle its ManifestWorks. They have their own actions and checks but share
// the faults.
//
// Each seed determines one history per kind: the same actions, writes, and log, byte for byte. To
// replay one:
//
//	go test ./pkg/simulation/histories -run TestSoak -seed=SEED -kind=UpgradeConfig -v
package histories
