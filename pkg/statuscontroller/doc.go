// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statuscontroller is the list of the controllers of the Update Status Controller, and what they
// share: its tokens, its Events, and its metrics.
//
// It decides nothing about updates, and it never exits the process.
package statuscontroller
