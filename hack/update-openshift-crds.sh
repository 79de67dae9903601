#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Copies OpenShift's own CRDs out of the github.com/openshift/api that go.mod names, for the dev cluster. Where there is
# one for each feature set, the default one is taken. That of the File Integrity Operator comes from its own module.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go mod download github.com/openshift/api
module=$(go list -m -f '{{.Dir}}' github.com/openshift/api)
target=pkg/devcluster/crds

mkdir -p "$target"
rm -f "$target"/*.yaml
for resource in \
  config/v1/clusterversions config/v1/clusteroperators config/v1/infrastructures \
  machineconfiguration/v1/machineconfigpools machineconfiguration/v1/machineconfigs \
  machine/v1beta1/machines machine/v1beta1/machinesets; do
  api=${resource%/*} name=${resource##*/} found=()
  for crd in "$module/$api"/zz_generated.crd-manifests/*_"$name"{,-Default}.crd.yaml; do
    [[ ! -f $crd ]] || found+=("$crd")
  done
  if [[ ${#found[@]} != 1 ]]; then
    echo "$0: want one CRD of $resource in github.com/openshift/api, found ${#found[@]}: say here which" >&2
    exit 1
  fi
  cat "${found[0]}" >"$target/$name.yaml" # files of the module cache are read-only; these are not
done

integrity=$(go mod download -json github.com/openshift/file-integrity-operator@v1.3.6 | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
cat "$integrity/config/crd/bases/fileintegrity.openshift.io_fileintegrities.yaml" >"$target/fileintegrities.yaml"
