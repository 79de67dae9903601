#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the bundle for the Operator Lifecycle Manager to bundle and bundle.Dockerfile: the
# operator and the Update Status Controller, as installed by deploy and deploy/update-status.
# Objects that the Operator Lifecycle Manager cannot create are written to deploy/olm/beside.yaml.
# operator-sdk generates and validates the bundle.
#
# VERSION, such as v0.1.0, is the version of the bundle, and IMG its image. REPLACES is the version
# that can be upgraded to it; a first version replaces none. OUT is an alternative output folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${VERSION:-v0.1.0} replaces=${REPLACES:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]] || { echo "hack/update-bundle.sh: VERSION is $version, and must be a version such as v0.1.0" >&2; exit 2; }
[[ -z $replaces || $replaces =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]] || { echo "hack/update-bundle.sh: REPLACES is $replaces, and must be a version such as v0.1.0" >&2; exit 2; }
image=${IMG:-managed-upgrade-operator:$version} out=${OUT:-.} beside=${OUT:-deploy/olm}/beside.yaml
export KUBECTL=${KUBECTL:-$PWD/bin/kubectl}
sdk=$PWD/bin/operator-sdk

rendered=$(
  for folder in deploy deploy/update-status; do
    hack/render.sh "$folder" "$image" "${VERSION:-}"
    echo ---
  done | sed '$d'
)
bundle=$(mktemp -d)/bundle
go build -o "$bundle" ./hack/bundle
manifests=$(
  "$bundle" separate "$beside" <<<"$rendered"
  echo ---
  "$bundle" base "$image" "$version"
  for file in deploy/samples/{upgrade,scheduled-maintenance,update-status}/*.yaml; do
    echo ---
    cat "$file"
  done
)
scorecard=$PWD/deploy/olm/scorecard.yaml
cd "$out"
out=$PWD work=$(mktemp -d)
trap 'rm -rf "$work" "$(dirname "$bundle")"' EXIT
cd "$work" # without the file PROJECT, which changes what the operator-sdk writes
printf '%s\n' "$manifests" | "$sdk" generate bundle --quiet --package managed-upgrade-operator --version "${version#v}" --output-dir bundle \
  --channels stable --default-channel stable
"$bundle" complete "$image" ${replaces:+"$replaces"}
sed -i '/operators.operatorframework.io.metrics/d' bundle.Dockerfile
mkdir -p bundle/tests/scorecard
cp "$scorecard" bundle/tests/scorecard/config.yaml
cat >>bundle.Dockerfile <<END
COPY bundle/tests/scorecard /tests/scorecard/
LABEL operators.operatorframework.io.test.config.v1=tests/scorecard/
LABEL operators.operatorframework.io.test.mediatype.v1=scorecard+v1
LABEL com.redhat.openshift.versions=v4.17
END
# It warns that poddisruptionbudgets are removed from policy/v1beta1, because it checks only the
# group of a permission and not the version, which is v1.
"$sdk" bundle validate ./bundle --select-optional suite=operatorframework --output text
"$sdk" scorecard --list ./bundle
rm -rf "$out/bundle"
cp -r bundle bundle.Dockerfile "$out"
