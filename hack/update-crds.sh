#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes deploy/crds from the API types and their markers; hack/crds completes them. The subfolder
# scheduled-maintenance has the kinds that no controller serves yet, which are not installed with the
# operator.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rm -f deploy/crds/*_*.yaml deploy/crds/*/*_*.yaml
bin/controller-gen crd paths=./api/upgrade/... output:crd:dir=deploy/crds
bin/controller-gen crd paths=./api/managedupgrade/... output:crd:dir=deploy/crds/scheduled-maintenance
go run ./hack/crds deploy/crds/*_*.yaml deploy/crds/*/*_*.yaml
