#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# hive.sh IMAGE [TAG]
#
# Prints the SelectorSyncSet that makes Hive install the operator, with IMAGE, on clusters whose
# ClusterDeployments have the label upgrade.managed.openshift.io/operator=installed. It contains
# the manifests of deploy as printed by render.sh.
#
# KUBECTL is the client, oc or kubectl, optionally with arguments.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

image=${1:?the image is missing, for example registry.example.com/managed-upgrade-operator:v0.1.0}

manifests=$(hack/render.sh deploy "$image" "${2:-}")
go run ./hack/manifests hive <<<"$manifests"
