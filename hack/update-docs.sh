#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the reference pages: one per API group, generated from the types, and the pages generated
# by hack/docs and hack/commands.
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

# The page shows the records of UpgradeJobs with the schema completed by hack/crds: their key is
# the attempt, they may have no version, and there are two more phases.
page=docs/reference/scheduled-maintenance.md
completed=$(sed \
  -e '/^| `phase` _\[Phase\]/s/Enum: \[New Pending Upgrading Upgraded Failed Unknown Paused\]/Enum: [New Pending Upgrading Upgraded Failed Unknown Paused Skipped]/' \
  -e '/^| `version` _string_ | version is the version to which the upgrade leads/s/Required: /Optional: /' \
  -e '/^| `attempt` _integer_ | attempt is the number of the attempt at this version, from 1/s/Optional: /Required: /' "$page")
for text in "Unknown Paused Skipped]" "MinLength: 1 <br />Optional: \{\}" "Minimum: 1 <br />Required: \{\}"; do
  [[ $completed == *"$text"* ]] || { echo "$0: $page has another text than is replaced: $text" >&2; exit 1; }
done
printf '%s\n' "$completed" >"$page"
go run ./hack/docs
rm -rf docs/reference/kubectl-update
mkdir docs/reference/kubectl-update
go run ./hack/commands markdown docs/reference/kubectl-update
