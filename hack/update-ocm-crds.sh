#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Copies the CRDs of Open Cluster Management for the dev fleet from the module pinned in go.mod:
# the CRDs of a hub and of managed clusters.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go mod download open-cluster-management.io/api
module=$(go list -m -f '{{.Dir}}' open-cluster-management.io/api)
target=pkg/devcluster/ocm/crds

# copy FOLDER RESOURCE... copies the CRDs of resources, given as API/NAME.
copy() {
  local folder=$target/$1 resource found
  shift
  mkdir -p "$folder"
  rm -f "$folder"/*.yaml
  for resource; do
    found=("$module/${resource%/*}"/*_"${resource##*/}".crd.yaml)
    if [[ ! -f ${found[0]} || ${#found[@]} != 1 ]]; then
      echo "$0: want one CRD of $resource in open-cluster-management.io/api, found ${found[*]}" >&2
      exit 1
    fi
    cat "${found[0]}" >"$folder/${resource##*/}.yaml" # files of the module cache are read-only; these are not
  done
}

copy hub cluster/v1/managedclusters cluster/v1alpha1/addonplacementscores cluster/v1beta1/placements \
  cluster/v1beta1/placementdecisions cluster/v1beta2/managedclustersets cluster/v1beta2/managedclustersetbindings \
  work/v1/manifestworks work/v1alpha1/manifestworkreplicasets \
  addon/v1beta1/clustermanagementaddons addon/v1beta1/managedclusteraddons addon/v1beta1/addondeploymentconfigs
copy spoke work/v1/appliedmanifestworks cluster/v1alpha1/clusterclaims
