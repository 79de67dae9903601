// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan has the commands that find a release, analyze the update to it, and request it: releases, channel,
// pre-checks, start, control-plane, worker-nodes, and clear.
package plan
