// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle runs upgrade objects of any kind through their life: it waits for the requested
// time, acquires the cluster's lock, sets the finalizer, lets the engine run the steps of the
// runbook, saves the record, publishes it, and finally releases the lock and removes the finalizer.
// A kind describes what differs between kinds; see Kind.
//
// The rules that hold for every kind:
//
//   - Status is a function of the record, the spec, and the cluster, never of what was shown before.
//   - An attempt is identified by its version and its key (the requested time), not by a counter.
//   - Evidence that an attempt started is its record or the Lease that names the UID of the object
//     and the attempt. Both can be written by operators only. A finalizer is no evidence.
//   - If the record is lost, the attempt that the Lease names is resumed, or, if the spec requests
//     another one by now, cleaned up before anything else happens.
//   - A Lease may be broken only if the attempt that it names has ended, whatever the kind.
//   - A decision that ends an attempt is made on a cache that has caught up with the API server.
//   - A pass in which nothing changed makes no request.
//   - What is written next is always valid, whatever the status contained before. If it is too large,
//     the oldest records are dropped. A status that is rejected all the same ends the attempt, so that it
//     cannot hold the lock forever.
//
// # The lock
//
// Without engine.Commit.After, an attempt waits for its time as a Pending object without a finalizer, and
// acquires the lock before its first step. With it, the attempt starts at once, has the finalizer, and
// is Pending in its steps until that step is done; see docs/decisions/0027-the-lock-as-a-step.md.
// Plan.holdsLock is the only answer to whether an attempt has the lock according to its record.
//
// The package does not know what the steps do, nor which kinds there are.
package lifecycle
