#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails if the output of hack/update-rbac.sh is outdated.
set -euo pipefail

exec "$(dirname "${BASH_SOURCE[0]}")/compare-generated.sh" rbac \
  deploy/operator/role.yaml deploy/file-integrity/role.yaml deploy/update-status/role.yaml deploy/hub/role.yaml deploy/action-replica-sets/role.yaml
