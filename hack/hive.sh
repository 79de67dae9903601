#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# hive.sh IMAGE [TAG]
#
# Prints the SelectorSyncSet by which Hive installs the operator, as IMAGE, in the clusters whose
# ClusterDeployments have the label upgrade.managed.openshift.io/operator=installed: the manifests of
# deploy, as render.sh prints them.
#
# KUBECTL is the client, oc or kubectl, and may have arguments.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

image=${1:?the image is missing, for example registry.example.com/managed-upgrade-operator:v0.1.0}

manifests=$(hack/render.sh deploy "$image" "${2:-}")
cat <<'END'
apiVersion: hive.openshift.io/v1
kind: SelectorSyncSet
metadata:
  name: managed-upgrade-operator
spec:
  clusterDeploymentSelector:
    matchLabels:
      upgrade.managed.openshift.io/operator: installed
  resourceApplyMode: Upsert
  resources:
END
awk 'BEGIN { first = 1 } /^---$/ { first = 1; next } { print (first ? "  - " : "    ") $0; first = 0 }' <<<"$manifests"
