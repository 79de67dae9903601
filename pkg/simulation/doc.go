// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation is a test kit that combines an in-memory API server, controllers that run
// according to their declarations, and a virtual clock in one process. Hours pass in milliseconds,
// and each seed produces the same history, byte for byte.
//
//   - World contains the API server: a store that uses virtual timestamps, applies defaults, and
//     validates with the CustomResourceDefinitions, behind controller-runtime's fake client.
//   - Program is a program that uses the API server, such as the operator. Process is one life of it,
//     with caches that follow the API server, work queues, and controllers created for its clients
//     and clock. A process may crash before or after any write and may stall in a request, and several
//     processes may run at a time.
//   - FaultPlan determines the outcome of each request of a process: it is served, it fails, its response
//     is lost, it conflicts, it crashes or stalls the process, or caches lag.
//   - World.Observe reports every stored change, for checking invariants.
//   - Harness is a World in which a test runs one program, such as the controllers of a package.
//
// A test adds objects (World.Add, World.Client), starts programs (World.Start), and lets time pass
// (World.RunFor, World.RunUntil). The example runs an upgrade with a custom runbook.
//
// NewFakeClient returns a client for a world without programs, for unit tests of code that needs
// neither time nor controllers.
//
// The package knows nothing about specific controllers or OpenShift. Its subpackage openshift adds
// a scripted cluster and the simulators of the dev cluster, and its subpackage histories adds
// random histories.
package simulation
