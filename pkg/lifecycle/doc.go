// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle runs upgrade objects of any kind through their life. It waits for the requested time,
// acquires the lock of the cluster, sets the finalizer, lets the engine run the steps of the runbook, saves and
// publishes the record, and finally releases the lock and removes the finalizer. An UpgradeKind describes the
// differences between kinds.
//
// These rules hold for every kind:
//
//   - The status is a function of the record, the spec, and the cluster, never of an earlier status.
//   - An attempt is identified by its version and its key (the requested time), not by a counter.
//   - Only two things prove that an attempt started: its record, and a Lease with the UID of the object and
//     the attempt. Only operators can write them. A finalizer proves nothing.
//   - If the record is lost, the attempt of the Lease is resumed, or cleaned up first if the spec requests
//     another one by now.
//   - A Lease may be broken only if its attempt has ended, whatever the kind.
//   - A decision that ends an attempt requires a cache that has caught up with the API server.
//   - A pass in which nothing has changed makes no request.
//   - Whatever the status contained before, the next status is valid. If it is too large, the oldest records
//     are dropped. If the API server still rejects it, the attempt ends, or it would hold the lock forever.
//
// # The lock
//
// Without engine.Commit.After, an attempt waits for its time as a Pending object without a finalizer, and
// acquires the lock before its first step. With it, the attempt starts at once, has the finalizer, and is
// Pending in its steps until that step is done; see docs/decisions/0027-the-lock-as-a-step.md. Only
// AttemptPlan.holdsLock decides whether an attempt has the lock according to its record.
//
// The package knows neither the kinds nor their steps.
package lifecycle
