#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Copies the permissions of Open Cluster Management's agents for the dev fleet from the module
# pinned in hack/tools/ocm. They are the templates that its operator uses to deploy a klusterlet.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$PWD/pkg/devcluster/ocm/klusterlet
cd hack/tools/ocm
go mod download open-cluster-management.io/ocm
module=$(go list -m -f '{{.Dir}}' open-cluster-management.io/ocm)

for folder in managed management; do
  mkdir -p "$target/$folder"
  rm -f "$target/$folder"/*.yaml
  for file in "$module/manifests/klusterlet/$folder"/*{role,serviceaccount}*.yaml; do
    cat "$file" >"$target/$folder/${file##*/}" # files of the module cache are read-only; these are not
  done
done
