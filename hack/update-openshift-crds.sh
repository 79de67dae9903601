#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Copies OpenShift's CRDs for the dev cluster from the version of github.com/openshift/api in
# go.mod. If there is one per feature set, it copies the default. The CRDs of the File Integrity
# Operator, the Prometheus Operator, and the Operator Lifecycle Manager come from their own
# modules.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go mod download github.com/openshift/api
module=$(go list -m -f '{{.Dir}}' github.com/openshift/api)
target=pkg/openshiftsim/crds

mkdir -p "$target"
rm -f "$target"/*.yaml
for resource in \
  config/v1/clusterversions config/v1/clusteroperators config/v1/infrastructures config/v1/featuregates config/v1/proxies \
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

cat "$module/route/v1/zz_generated.crd-manifests/routes.crd.yaml" >"$target/routes.yaml" # its name has no prefix

# folder MODULE@VERSION prints the folder of a module that is not in go.mod.
folder() {
  go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}

integrity=$(folder github.com/openshift/file-integrity-operator@v1.3.6)
cat "$integrity/config/crd/bases/fileintegrity.openshift.io_fileintegrities.yaml" >"$target/fileintegrities.yaml"

monitoring=$(folder github.com/prometheus-operator/prometheus-operator@v0.85.0)
for name in servicemonitors prometheusrules; do
  cat "$monitoring/example/prometheus-operator-crd/monitoring.coreos.com_$name.yaml" >"$target/$name.yaml"
done

olm=$(folder github.com/operator-framework/api@v0.45.0)
mkdir -p "$target/olm"
rm -f "$target/olm"/*.yaml
for name in subscriptions installplans clusterserviceversions catalogsources; do
  cat "$olm/crds/operators.coreos.com_$name.yaml" >"$target/olm/$name.yaml"
done
