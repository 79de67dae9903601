#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# fuzz.sh TIME PACKAGE...
#
# Runs each fuzz target in the packages for TIME.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

time=$1
shift
for package; do
  targets=$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$package"/*_test.go | cut -d ' ' -f 2)
  for target in $targets; do
    go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
  done
done
