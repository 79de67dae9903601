#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails if the output of hack/update-ocm-crds.sh is outdated.
set -euo pipefail

exec "$(dirname "${BASH_SOURCE[0]}")/compare-generated.sh" ocm-crds pkg/devcluster/ocm/crds
