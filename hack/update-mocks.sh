#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes mocks of interfaces next to the tests that check their calls.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

header=$(mktemp)
trap 'rm -f "$header"' EXIT
printf %s "$(sed 's|^// ||' boilerplate/header.go.txt)" >"$header" # mockgen comments it out

# mock PACKAGE FILE INTERFACE writes a mock of an interface declared in a file.
mock() {
  local lower
  lower=$(tr '[:upper:]' '[:lower:]' <<<"$3")
  bin/mockgen -source="$1/$2" -destination="$1/mock_${lower}_test.go" -package="$(basename "$1")_test" \
    -copyright_file="$header" -write_command_comment=false -typed
}

mock pkg/notify/webhook webhook.go Sender
mock pkg/steps/silence window.go Alertmanager
