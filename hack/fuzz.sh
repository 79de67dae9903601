#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# fuzz.sh TIME [PACKAGE...]
#
# Runs each fuzz target in the packages for TIME. Without packages, it runs all that need no API
# server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

time=$1
shift
(($#)) || set -- $(grep -rlE --include='*_test.go' '^func Fuzz' pkg | xargs -n 1 dirname | sort -u | sed 's|^|./|')
for package; do
  targets=$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$package"/*_test.go | cut -d ' ' -f 2)
  for target in $targets; do
    go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
  done
done
