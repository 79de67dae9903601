#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails if the output of hack/update-klusterlet.sh is outdated.
set -euo pipefail

exec "$(dirname "${BASH_SOURCE[0]}")/compare-generated.sh" klusterlet pkg/devcluster/ocm/klusterlet/managed pkg/devcluster/ocm/klusterlet/management
