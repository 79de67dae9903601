#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the deepcopy functions of the API types next to the types.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin/controller-gen object:headerFile=boilerplate/header.go.txt paths=./api/...
