#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# go-build.sh ARGUMENTS...
#
# Runs "go build ARGUMENTS" and reports progress on stderr every ten seconds: how many of the
# required modules have been downloaded and how many packages compiled. The last argument is the
# packages.
set -uo pipefail

every=10 next=$((SECONDS + every)) downloaded=0 compiled=0 total=
progress() {
  ((SECONDS >= next)) || return
  next=$((SECONDS + every))
  if [[ -n $total ]]; then
    echo "compiled $compiled of at most $total packages" >&2
  else
    echo "downloaded $downloaded modules" >&2
  fi
}

while IFS= read -r line; do # the modules, before anything is compiled
  case $line in
    'go: downloading '*) downloaded=$((downloaded + 1)) ;;
    *[!0-9]*) echo "$line" >&2 ;;
    *) total=$line ;;
  esac
  progress
done < <(go list -deps "${@: -1}" 2>&1 | awk '/^go: /{print; fflush(); next} {n++} END{print n}')

go build -v "$@" 2>&1 | while IFS= read -r line; do
  case $line in
    'go: downloading '*) ;;
    *[!a-zA-Z0-9._~/+-]*) echo "$line" >&2 ;; # not the name of a package: an error of the compiler
    *) compiled=$((compiled + 1)) ;;
  esac
  progress
done
exit "${PIPESTATUS[0]}"
