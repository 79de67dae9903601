// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation is a test kit: an API server in memory, controllers that run on it by what
// they declare, and a virtual clock, in one process. Hours pass in milliseconds. One seed leads to
// one history, byte by byte.
//
//   - World holds the API server: the fake client of controller-runtime, with the times of the
//     virtual clock, and with defaults and validation by the CustomResourceDefinitions.
//   - Process is one life of a process: caches that follow the API server, work queues, and the
//     controllers that a function returns for its clients and its clock. A process may crash before
//     or after any of its writes, may stall in a request, and several may run at a time.
//   - Plan decides what becomes of each request of a process: it is served, it fails, it is served
//     but its answer is lost, it conflicts, it crashes or stalls the process.
//   - World.Observe reports every stored change, for invariants.
//
// NewFakeClient returns a plain cluster in memory for unit tests of code that needs neither time
// nor controllers.
//
// The package knows no controller and no OpenShift: package openshift below it adds these.
package simulation
