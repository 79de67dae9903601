#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that no program looks up methods by names that are known at run time only, as text/template does: with such a
# lookup, the linker keeps every exported method of the program, a fifth of its size. Input: none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The go command keeps what the linker prints under the main package as it was compiled, and prints it again when it links
# that package by other flags of the linker. With a flag of the compiler, other builds do not print it.
for program in operator hub update-status-controller kubectl-update; do
  lookups=$(CGO_ENABLED=0 go build -trimpath -gcflags=-dwarf=false -ldflags '-s -w -dumpdep' -o /dev/null "./cmd/$program" 2>&1 |
    grep -oE -- '-> \S+ <ReflectMethod>' | sort -u | head -5 || true)
  if [[ -n $lookups ]]; then
    printf '%s: %s looks up methods by names that are known at run time only, so that the linker removes no method:\n%s\n' "$0" "$program" "$lookups" >&2
    exit 1
  fi
done
