#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the permissions of the programs from the kubebuilder:rbac markers beside the code that needs
# them: deploy/operator/role.yaml; deploy/file-integrity/role.yaml for the File Integrity Operator,
# which is optional; deploy/update-status/role.yaml for the Update Status Controller; and
# deploy/hub/role.yaml for the hub of fleets.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

optional='pkg/steps/postupgrade'
status='pkg/(statuscontroller|controllers/update(informer|status|plan))'
hub='pkg/(hub|fleet(/.*)?|steps/fleet|controllers/(managedclustersupgrade|clusterupgraderun))'
shared='pkg/manager'

# paths PATTERN [-v] prints the packages that match, or that do not.
paths() { go list ./pkg/... | grep -E ${2:-} "/($1)\$" | paste -s -d ';'; }

bin/controller-gen rbac:roleName=managed-upgrade-operator "paths=$(paths "$optional|$status|$hub" -v)" output:rbac:dir=deploy/operator
bin/controller-gen rbac:roleName=managed-upgrade-operator "paths=$(paths "$optional")" output:rbac:dir=deploy/file-integrity
bin/controller-gen rbac:roleName=update-status-controller "paths=$(paths "$status|$shared")" output:rbac:dir=deploy/update-status
bin/controller-gen rbac:roleName=managed-upgrade-hub "paths=$(paths "$hub|$shared")" output:rbac:dir=deploy/hub
