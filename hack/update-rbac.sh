#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the permissions of the operator from the kubebuilder:rbac markers beside the code that needs
# them: deploy/operator/role.yaml, and for the File Integrity Operator, which is optional,
# deploy/file-integrity/role.yaml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

optional=./pkg/steps/postupgrade
packages=$(go list ./pkg/... | grep -v "${optional#.}\$" | paste -s -d ';')

bin/controller-gen rbac:roleName=managed-upgrade-operator "paths=$packages" output:rbac:dir=deploy/operator
bin/controller-gen rbac:roleName=managed-upgrade-operator paths="$optional" output:rbac:dir=deploy/file-integrity
