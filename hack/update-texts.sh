#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the golden files of texts, testdata/texts.txt in each package. Tests compare the texts
# with these files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t packages < <(git grep -l --untracked '/test/golden"' -- 'pkg/*_test.go' | xargs -n1 dirname | sort -u)
for package in "${packages[@]}"; do rm -f "$package/testdata/texts.txt"; done
go test -count=1 "${packages[@]/#/./}" -args -update
