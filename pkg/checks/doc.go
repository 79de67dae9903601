// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checks holds the rules that turn facts about the cluster into findings. Health gates,
// pre-checks, and later the built-in update informers use the same rules.
//
// A check is one file with one Check, and one line in the table of All. It declares the kinds that
// it reads; caches, watches, and permissions follow from that declaration. A check writes nothing
// and knows no upgrade. A check that cannot be completed is an error, never a good result.
package checks
