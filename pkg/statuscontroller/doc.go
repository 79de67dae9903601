// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statuscontroller assembles the Update Status Controller: its controllers and the tokens, Events,
// and metrics that they share.
//
// It makes no decisions about updates and never exits the process.
package statuscontroller
