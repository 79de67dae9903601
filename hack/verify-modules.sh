#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails unless go.mod and go.sum list exactly the modules that the code imports.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for module in . hack/tools/links test/e2e/process-template test/ui; do
  go mod -C "$module" tidy -diff
done
