// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package assessment judges an update: whether it progresses, waits, or is stuck, why, how long it
// still takes, and what to do.
//
// The package is pure: it reads no clock and no object, and equal inputs yield equal bytes. It does not decide what is
// pending or what pauses an update, because the conditions of the status do. It does not judge single objects, because
// the informers do. It sees what they cannot: that nothing changes, which insight explains which other one, and what
// is missing.
package assessment
