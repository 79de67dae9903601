// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation is a test kit: an API server in memory, controllers that run on it by what
// they declare, and a virtual clock, in one process. Hours pass in milliseconds. One seed leads to
// one history, byte by byte.
//
//   - World holds the API server: a store that stamps virtual times, sets defaults, and validates by
//     the CustomResourceDefinitions, behind the fake client of controller-runtime.
//   - Program is a program that uses it, such as the operator, and Process is one life of it: caches
//     that follow the API server, work queues, and the controllers that a function returns for its
//     clients and its clock. A process may crash before or after any of its writes, may stall in a
//     request, and several may run at a time.
//   - Plan decides what becomes of each request of a process: it is served, it fails, it is served
//     but its answer is lost, it conflicts, it crashes or stalls the process, or caches lag.
//   - World.Observe reports every stored change, for invariants.
//   - Harness is a World in which a test runs one program, such as the controllers of a package.
//
// A test adds objects (World.Add, World.Client), starts programs (World.Start), and lets time pass
// (World.RunFor, World.RunUntil). The example runs an upgrade with a runbook of its own.
//
// NewFakeClient returns a client of a world without programs, for unit tests of code that needs
// neither time nor controllers.
//
// The package knows no controller and no OpenShift: package openshift below it adds a scripted
// cluster and the simulators of the dev cluster, and package histories random histories.
package simulation
