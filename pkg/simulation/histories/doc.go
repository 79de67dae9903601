// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package histories runs random histories of upgrades: seeded sequences of what people, other
// clients, and failures do to an upgrade, with the real controllers and runbooks on a simulated
// cluster. After each stored change it checks what must hold. The checks read the objects of the
// API server alone; they share no code with what they check.
//
// There are histories of UpgradeConfigs, and of UpgradeJobs with their hooks, delayed pools, and
// suspension windows. Both have the same cluster, faults, and checks of what the operator requests
// from the cluster.
//
// There are also histories of fleets: ManagedClustersUpgrades on a hub with three to six simulated clusters, whose
// agents answer its ManifestWorks. Each has its own actions and checks; they share the faults.
//
// A seed has one history of each kind: the same actions, the same writes, the same log, byte by byte.
// To replay one:
//
//	go test ./pkg/simulation/histories -run TestSoak -seed=SEED -kind=UpgradeConfig -v
package histories
