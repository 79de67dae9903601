#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# compare-generated.sh KIND PATH...
#
# Runs hack/update-KIND.sh in a copy of the working tree and fails if a PATH differs afterward.
# PATH is a file, or a folder with files to compare. The working tree is not changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kind=$1
shift

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do [[ ! -e $file ]] || printf '%s\0' "$file"; done |
  tar -cf - --null -T - | tar -xf - -C "$copy"
ln -s "$PWD/bin" "$copy/bin"

"$copy/hack/update-$kind.sh"

stale=0
for path in "$@"; do
  [[ -e $path || -e $copy/$path ]] || continue
  diff -ruN "$path" "$copy/$path" || {
    echo "$path is stale: run 'hack/update-$kind.sh' (or 'make update', for everything)" >&2
    stale=1
  }
done
exit "$stale"
