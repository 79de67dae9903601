// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package assessment judges an update: whether it progresses, waits, or is stuck, why, how long it
// still takes, and what to do.
//
// The package is pure: it reads no clock and no object, and equal inputs yield equal bytes. It decides neither what is
// pending nor what pauses an update, which the conditions of the status do, and it finds nothing wrong with an object
// itself, which the informers do. It sees what they cannot: that nothing changes, which insight explains which other
// one, and what is missing.
package assessment
