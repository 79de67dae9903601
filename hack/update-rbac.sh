#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the permissions of the programs from the kubebuilder:rbac markers next to the code that
# needs them: deploy/operator/role.yaml; deploy/file-integrity/role.yaml for the optional File
# Integrity Operator; deploy/update-status/role.yaml for the Update Status Controller;
# deploy/hub/role.yaml for the fleet hub; and deploy/action-replica-sets/role.yaml for one of the
# hub's options.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

optional='pkg/steps/postupgrade'
status='pkg/(statuscontroller|controllers/update(informer|status|plan))'
sets='pkg/fleet/run'
hub='pkg/(hub|fleet/(selection|admission(/.*)?|run/.*)|controllers/(managedclustersupgrade|clusterupgraderun))'
shared='pkg/manager'
proxy='pkg/clusterproxy'

# paths PATTERN [-v] prints the packages that match, or with -v, those that do not.
paths() { go list ./pkg/... | grep -E ${2:-} "/($1)\$" | paste -s -d ';'; }

bin/controller-gen rbac:roleName=managed-upgrade-operator "paths=$(paths "$optional|$status|$hub|$sets" -v)" output:rbac:dir=deploy/operator
bin/controller-gen rbac:roleName=managed-upgrade-operator "paths=$(paths "$optional")" output:rbac:dir=deploy/file-integrity
bin/controller-gen rbac:roleName=update-status-controller "paths=$(paths "$status|$shared")" output:rbac:dir=deploy/update-status
bin/controller-gen rbac:roleName=managed-upgrade-hub "paths=$(paths "$hub|$shared|$proxy")" output:rbac:dir=deploy/hub
bin/controller-gen rbac:roleName=managed-upgrade-hub-replica-sets "paths=$(paths "$sets")" output:rbac:dir=deploy/action-replica-sets
