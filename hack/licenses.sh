#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# licenses.sh FOLDER PACKAGE...
#
# Writes the licenses and notices of everything that is linked into the programs PACKAGE to FOLDER:
# Go's own, and those of each module, by module path. GOOS and GOARCH select the platform of the
# programs. A module without a license is an error.
set -euo pipefail

folder=${1:?the folder is missing}
shift
mkdir -p "$folder/go"
cp "$(go env GOROOT)/LICENSE" "$folder/go/"

modules=$(go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' "$@" | sort -u)
while read -r module source; do
  files=$(cd "$source" && find . -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) ! -name '*.go')
  [[ -n $files ]] || { echo "licenses.sh: the module $module has no license" >&2; exit 1; }
  while read -r file; do
    install -D --mode=0644 "$source/$file" "$folder/$module/$file"
  done <<<"$files"
done <<<"$modules"
