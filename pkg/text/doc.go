// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text prepares text for messages to users: it sanitizes and limits foreign text and joins
// names.
//
// It only imports the standard library, so every package can use it. It knows nothing about objects
// or conditions.
package text
