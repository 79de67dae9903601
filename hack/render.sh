#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# render.sh FOLDER IMAGE [TAG]
#
# Prints the manifests in a folder with an image. The hub's manifests contain two images: its own,
# and the image of the Jobs that it runs on managed clusters. With the tag of a release, the alerts
# link to the pages of that release instead of the main branch.
#
# KUBECTL is the client, oc or kubectl, optionally with arguments.
set -euo pipefail

folder=${1:?the folder is missing, for example deploy}
image=${2:?the image is missing, for example registry.example.com/managed-upgrade-operator:v0.1.0}
tag=${3:-main}
read -ra kubectl <<<"${KUBECTL:-kubectl}"

manifests=$("${kubectl[@]}" kustomize "$folder")
go run -C "$(dirname "${BASH_SOURCE[0]}")/.." ./hack/manifests render "$image" "$tag" <<<"$manifests"
