#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes deploy/crds from the API types and their markers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rm -f deploy/crds/*_*.yaml
bin/controller-gen crd paths=./api/... output:crd:dir=deploy/crds
