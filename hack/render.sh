#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# render.sh FOLDER IMAGE [TAG]
#
# Prints the manifests of a folder with an image. The hub has the image twice: its own, and that of the
# Jobs that it runs in managed clusters. With the tag of a release, the alerts refer to its pages instead of
# those of the main branch.
#
# KUBECTL is the client, oc or kubectl, and may have arguments.
set -euo pipefail

folder=${1:?the folder is missing, for example deploy}
image=${2:?the image is missing, for example registry.example.com/managed-upgrade-operator:v0.1.0}
tag=${3:-main}
read -ra kubectl <<<"${KUBECTL:-kubectl}"

manifests=$("${kubectl[@]}" kustomize "$folder")
go run -C "$(dirname "${BASH_SOURCE[0]}")/.." ./hack/manifests render "$image" "$tag" <<<"$manifests"
