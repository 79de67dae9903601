#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails if the output of hack/update-bundle.sh is outdated, if operator-sdk rejects it, or if the
# Operator Lifecycle Manager could not upgrade from it to a later version.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/compare-generated.sh bundle bundle bundle.Dockerfile deploy/olm

bin/scorecard bundle

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/next" "$folder/catalog"
VERSION=v0.2.0 REPLACES=v0.1.0 OUT=$folder/next hack/update-bundle.sh >/dev/null
hack/catalog.sh bundle "$folder/next/bundle" >"$folder/catalog/catalog.yaml"
bin/opm validate "$folder/catalog"
# A gap in the channel must be detected: opm validates the upgrade path, not just the format.
sed -i 's/replaces: managed-upgrade-operator.v0.1.0/replaces: managed-upgrade-operator.v0.2.0/' "$folder/catalog/catalog.yaml"
if bin/opm validate "$folder/catalog" 2>/dev/null; then
  echo "$0: opm accepts a catalog in which no version upgrades to v0.2.0" >&2
  exit 1
fi
