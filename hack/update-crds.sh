#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes deploy/crds from the API types and their markers; hack/crds completes them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rm -f deploy/crds/*_*.yaml
bin/controller-gen crd paths=./api/upgrade/... paths=./api/managedupgrade/... output:crd:dir=deploy/crds
go run ./hack/crds deploy/crds/*_*.yaml
