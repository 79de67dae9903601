#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the definitions of the API types from their markers; hack/crds completes them. Those of the
# operator are in deploy/crds, those of update status, which installs alone, in
# deploy/update-status/crds, and those of fleets, which are installed on a hub, in deploy/hub/crds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rm -f deploy/{crds,update-status/crds,hub/crds}/*_*.yaml
bin/controller-gen crd paths=./api/upgrade/... paths=./api/managedupgrade/... output:crd:dir=deploy/crds
bin/controller-gen crd paths=./api/config/... output:crd:dir=deploy/update-status/crds
bin/controller-gen crd paths=./api/cluster/... paths=./api/fleet/... output:crd:dir=deploy/hub/crds
go run ./hack/crds deploy/{crds,update-status/crds,hub/crds}/*_*.yaml
