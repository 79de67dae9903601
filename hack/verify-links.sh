#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks the links and anchors in all Markdown files, and that every file can be reached from
# README.md. Page fragments in hack/docs are checked as part of the pages generated from them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=$(mktemp)
trap 'rm -f "$program"' EXIT
go test -C hack/tools/links .
go build -C hack/tools/links -o "$program" .
git ls-files -z '*.md' ':!hack/docs' ':!README.md' | xargs -0 "$program" README.md
