#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that no program looks up methods by names that are only known at run time, like
# text/template, and that no program outgrows its limit. Such a lookup makes the linker keep every
# exported method, a fifth of the program's size. It needs no input.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The limits, in MiB, about 6% above the sizes in docs/benchmarks.md.
declare -A limits=([operator]=47 [hub]=40 [update-status-controller]=41 [kubectl-update]=42)

output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT

# The go command caches the linker's output together with the compiled main package and prints it
# again when the package is linked with other linker flags. With an additional compiler flag, other
# builds do not print it.
for program in "${!limits[@]}"; do
  lookups=$(CGO_ENABLED=0 GOARCH=amd64 go build -trimpath -gcflags=all=-dwarf=false -ldflags '-s -w -dumpdep' -o "$output/$program" "./cmd/$program" 2>&1 |
    grep -oE -- '-> \S+ <ReflectMethod>' | sort -u | head -5 || true)
  if [[ -n $lookups ]]; then
    printf '%s: %s looks up methods by names that are known at run time only, so that the linker removes no method:\n%s\n' "$0" "$program" "$lookups" >&2
    exit 1
  fi
  size=$(stat -c %s "$output/$program" 2>/dev/null || stat -f %z "$output/$program")
  if ((size > limits[$program] << 20)); then
    printf '%s: %s has %d MiB, want at most %d MiB\n' "$0" "$program" $((size >> 20)) "${limits[$program]}" >&2
    exit 1
  fi
done
