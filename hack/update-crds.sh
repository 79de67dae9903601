#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the definitions of the API types from their markers; hack/crds completes them. Those of the
# operator are in deploy/crds, and those of update status, which installs alone, in
# deploy/update-status/crds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rm -f deploy/crds/*_*.yaml deploy/update-status/crds/*_*.yaml
bin/controller-gen crd paths=./api/upgrade/... paths=./api/managedupgrade/... output:crd:dir=deploy/crds
bin/controller-gen crd paths=./api/config/... output:crd:dir=deploy/update-status/crds
go run ./hack/crds deploy/crds/*_*.yaml deploy/update-status/crds/*_*.yaml
