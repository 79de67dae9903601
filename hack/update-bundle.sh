#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the bundle for the Operator Lifecycle Manager: the operator and the Update Status Controller as
# deploy and deploy/update-status install them, in deploy/olm/bundle, and what the Operator Lifecycle
# Manager cannot create, in deploy/olm/beside.yaml. The operator-sdk generates the bundle, and validates it.
#
# VERSION, such as v0.1.0, is the version of the bundle, and IMG its image. REPLACES is the version from
# which the Operator Lifecycle Manager upgrades to it; a first version has none. OUT is another folder than
# deploy/olm for what is written.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${VERSION:-v0.1.0} replaces=${REPLACES:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]] || { echo "hack/update-bundle.sh: VERSION is $version, and must be a version such as v0.1.0" >&2; exit 2; }
[[ -z $replaces || $replaces =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]] || { echo "hack/update-bundle.sh: REPLACES is $replaces, and must be a version such as v0.1.0" >&2; exit 2; }
image=${IMG:-managed-upgrade-operator:$version} out=${OUT:-deploy/olm}
export KUBECTL=${KUBECTL:-$PWD/bin/kubectl}
sdk=$PWD/bin/operator-sdk csv=bundle/manifests/managed-upgrade-operator.clusterserviceversion.yaml

manifests=$(
  for folder in deploy deploy/update-status; do
    hack/render.sh "$folder" "$image" "${VERSION:-}"
    echo ---
  done | sed '$d' | go run ./hack/bundle "$out/beside.yaml"
  for file in deploy/olm/base.yaml deploy/samples/scheduled-maintenance/{clusterversion,upgradeconfig,upgradejob,upgradejobhook,upgradesuspensionwindow}.yaml; do
    echo ---
    sed "s|ICON|$(base64 -w0 deploy/olm/icon.svg)|; s|managed-upgrade-operator:latest|$image|; s|?ref=v0.0.0|?ref=$version|" "$file"
  done
)
scorecard=$PWD/deploy/olm/scorecard.yaml
cd "$out"
rm -rf bundle
printf '%s\n' "$manifests" | "$sdk" generate bundle --quiet --package managed-upgrade-operator --version "${version#v}" --output-dir bundle \
  --channels stable --default-channel stable
# The operator-sdk writes the time and its own name, and finds images only in environment variables.
sed -i -e '/^    createdAt: /d' -e '/^    operators.operatorframework.io\/\(builder\|project_layout\): /d' \
  -e "s|^  version: |  relatedImages:\n  - image: $image\n    name: managed-upgrade-operator\n&|" "$csv"
[[ -z $replaces ]] || sed -i "s|^  version: |  replaces: managed-upgrade-operator.$replaces\n&|" "$csv"
sed -i '/operators.operatorframework.io.metrics/d' bundle/metadata/annotations.yaml bundle.Dockerfile
mkdir -p bundle/tests/scorecard
cp "$scorecard" bundle/tests/scorecard/config.yaml
cat >>bundle.Dockerfile <<END
COPY bundle/tests/scorecard /tests/scorecard/
LABEL operators.operatorframework.io.test.config.v1=tests/scorecard/
LABEL operators.operatorframework.io.test.mediatype.v1=scorecard+v1
END
cat >>bundle/metadata/annotations.yaml <<END
  operators.operatorframework.io.test.config.v1: tests/scorecard/
  operators.operatorframework.io.test.mediatype.v1: scorecard+v1
END
# It warns that poddisruptionbudgets are removed from policy/v1beta1: it knows the group of a permission,
# and not the version, which is v1.
"$sdk" bundle validate ./bundle --select-optional suite=operatorframework --output text
"$sdk" scorecard --list ./bundle
