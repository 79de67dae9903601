// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan contains the commands that find a release, analyze the update to it, and request the update:
// releases, channel, pre-checks, start, control-plane, worker-nodes, and clear.
package plan
