#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# catalog.sh BUNDLE...
#
# Prints a file-based catalog for the Operator Lifecycle Manager with these bundles, which are
# folders written by hack/update-bundle.sh, oldest first. In the channel stable, each bundle
# upgrades the version that it replaces.
#
# BUNDLE_IMAGE is the template for bundle images, such as
# registry.example.com/bundle:v{{.Version}}.
set -euo pipefail

(($# > 0)) || { echo "hack/catalog.sh: name the folder of a bundle, for example bundle" >&2; exit 2; }
root=$(dirname "${BASH_SOURCE[0]}")/..
opm=$root/bin/opm

program=$(mktemp -d)/bundle
trap 'rm -r "$(dirname "$program")"' EXIT
go build -C "$root" -o "$program" ./hack/bundle
"$program" channel "$@"
for bundle; do
  "$opm" render "$bundle" --output yaml --alpha-image-ref-template "${BUNDLE_IMAGE:-managed-upgrade-operator-bundle:v{{.Version\}\}}"
done
