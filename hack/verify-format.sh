#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails unless the code is formatted like the output of `make format`: gofumpt and the order of
# imports.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin/golangci-lint fmt --diff
