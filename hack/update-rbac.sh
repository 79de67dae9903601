#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes what the operator may do, deploy/operator/role.yaml, from the kubebuilder:rbac markers beside the code that does it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin/controller-gen rbac:roleName=managed-upgrade-operator paths=./pkg/... output:rbac:dir=deploy/operator
