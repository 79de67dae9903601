// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package assessment judges an update: whether it is progressing, waiting, or stuck, why, how long it will still take,
// and what to do.
//
// The package is pure: it does not read the clock or any objects, and the same input always produces the same bytes.
// It does not decide what is pending or paused, because the conditions of the status do. It does not judge single
// objects, because the informers do. It detects what informers cannot see: lack of change, causal relations between
// insights, and missing data.
package assessment
