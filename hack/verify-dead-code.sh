#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that no program looks up methods by names that are only known at run time, like
# text/template. Such a lookup makes the linker keep every exported method, a fifth of the
# program's size. It needs no input.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The go command caches the linker's output together with the compiled main package and prints it
# again when the package is linked with other linker flags. With an additional compiler flag, other
# builds do not print it.
for program in operator hub update-status-controller kubectl-update; do
  lookups=$(CGO_ENABLED=0 go build -trimpath -gcflags=-dwarf=false -ldflags '-s -w -dumpdep' -o /dev/null "./cmd/$program" 2>&1 |
    grep -oE -- '-> \S+ <ReflectMethod>' | sort -u | head -5 || true)
  if [[ -n $lookups ]]; then
    printf '%s: %s looks up methods by names that are known at run time only, so that the linker removes no method:\n%s\n' "$0" "$program" "$lookups" >&2
    exit 1
  fi
done
