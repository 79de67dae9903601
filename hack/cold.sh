#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# cold.sh [TARGET...]
#
# Measures how long a newcomer waits for the targets of make, by default demo and test: in a fresh
# clone, with an empty build cache and without the tools in bin/. The modules are downloaded first,
# and that time is printed apart.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
git clone -q . "$work/clone"
cd "$work/clone"
export GOCACHE="$work/cache"
unset KUBEBUILDER_ASSETS

measure() { # measure WHAT COMMAND...
  local what=$1 began=$SECONDS
  shift
  "$@" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
  }
  printf '%-22s %5d s\n' "$what" $((SECONDS - began))
}

measure "downloads of modules" bash -c 'for mod in go.mod hack/tools/*/go.mod; do (cd "$(dirname "$mod")" && go mod download) || exit 1; done'
(($#)) || set -- demo test
for target in "$@"; do
  measure "make $target" make "$target"
done
