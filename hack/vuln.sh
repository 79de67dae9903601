#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks all modules for known vulnerabilities: the product and its examples for vulnerable code
# that is called, and the programs below hack/tools, which are used only by tests and releases, for
# vulnerable modules. VULNDB is the URL of the database, such as file:///srv/vulndb. It defaults to
# a copy of https://vuln.go.dev in bin/vulndb that is updated when the server can be reached.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

govulncheck=${GOVULNCHECK:-$PWD/bin/govulncheck}
source=${VULNDB_SOURCE:-https://vuln.go.dev/vulndb.zip}
copy=${VULNDB_COPY:-$PWD/bin/vulndb}

if [[ -z ${VULNDB:-} ]]; then
  new=$(mktemp -d)
  trap 'rm -rf "$new"' EXIT
  if curl --fail --silent --show-error --location --max-time 300 --output "$new/db.zip" "$source"; then
    unzip -q "$new/db.zip" -d "$new/db"
    rm -rf "$copy"
    mkdir -p "$(dirname "$copy")"
    mv "$new/db" "$copy"
  elif [[ -f $copy/index/db.json ]]; then
    echo "$0: $source cannot be reached; using the copy of $(cat "$copy/index/db.json")" >&2
  else
    echo "$0: no database of vulnerabilities: $source cannot be reached, and $copy has no copy; set VULNDB to the URL of one, such as file:///srv/vulndb" >&2
    exit 2
  fi
  VULNDB=file://$copy
fi

failed=()
check() { # check MODULE ARGUMENTS...
  local module=$1
  shift
  echo "=== $module"
  "$govulncheck" -db "$VULNDB" -C "$module" "$@" || failed+=("$module")
}

for file in go.mod docs/examples/*/go.mod; do
  check "$(dirname "$file")" ./...
done
for file in hack/tools/*/go.mod; do
  check "$(dirname "$file")" -scan module
done
if ((${#failed[@]} > 0)); then
  echo "$0: ${failed[*]}: vulnerable, or not checked" >&2
  exit 1
fi
