#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the reference pages: docs/reference/api.md from the API types, and those that hack/docs knows of.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p docs/reference
bin/crd-ref-docs --log-level=ERROR --source-path=api --config=hack/crd-ref-docs/config.yaml --templates-dir=hack/crd-ref-docs --renderer=markdown --output-path=docs/reference/api.md
if [[ -d hack/docs ]]; then
  go run ./hack/docs
fi
