#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the CustomResourceDefinitions of the API types, based on their markers and completed by
# hack/crds. The operator's are in deploy/crds, those of update status (which can be installed
# separately) in deploy/update-status/crds, and those of fleets (for the hub) in deploy/hub/crds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rm -f deploy/{crds,update-status/crds,hub/crds}/*_*.yaml
bin/controller-gen crd paths=./api/upgrade/... paths=./api/managedupgrade/... output:crd:dir=deploy/crds
bin/controller-gen crd paths=./api/config/... output:crd:dir=deploy/update-status/crds
bin/controller-gen crd paths=./api/cluster/... paths=./api/fleet/... output:crd:dir=deploy/hub/crds
go run ./hack/crds deploy/{crds,update-status/crds,hub/crds}/*_*.yaml
