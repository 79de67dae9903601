#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the reference pages: one for each API group, from its types, and those that hack/docs
# generates.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p docs/reference
# reference PAGE FOLDER writes the page of the API group in a folder of api.
reference() {
  bin/crd-ref-docs --log-level=ERROR --source-path="api/$2" --config=hack/crd-ref-docs/config.yaml --templates-dir=hack/crd-ref-docs --renderer=markdown --output-path="docs/reference/$1"
}
reference api.md upgrade
reference scheduled-maintenance.md managedupgrade
reference update-status.md config
reference fleets.md cluster
reference fleet-runs.md fleet
if [[ -d hack/docs ]]; then
  go run ./hack/docs
fi
