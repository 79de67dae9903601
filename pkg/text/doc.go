// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text prepares text for messages that people read: it cleans and bounds text that others
// wrote, and joins names.
//
// It imports the standard library only, so every package may use it. It knows no object and no
// condition.
package text
