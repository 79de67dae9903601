#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# chart.sh VERSION IMAGE FOLDER
#
# Writes the operator's Helm chart to FOLDER, with a version such as v0.1.0 and the given image:
# the manifests of deploy as a template, and the values and notes in deploy/helm/chart.
#
# KUBECTL is the client, oc or kubectl, optionally with arguments.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:?the version is missing, for example v0.1.0}
image=${2:?the image is missing, for example registry.example.com/managed-upgrade-operator:v0.1.0}
folder=${3:?the folder is missing, for example dist/managed-upgrade-operator}

mkdir -p "$folder"
cp -R deploy/helm/chart/. "$folder"
cat >"$folder/Chart.yaml" <<END
apiVersion: v2
name: managed-upgrade-operator
description: Upgrades OpenShift clusters at the time that you choose, and only while they are healthy.
type: application
version: ${version#v}
appVersion: $version
kubeVersion: ">=1.30.0-0"
home: https://github.com/managed-upgrade/managed-upgrade-operator
END
manifests=$(hack/render.sh deploy/helm "$image" "$version")
go run ./hack/manifests chart <<<"$manifests" >"$folder/templates/operator.yaml"
