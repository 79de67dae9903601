#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the first seed of the random histories in .ci/run: a checksum of the CRDs and of the
# sources that the histories are compiled from. A change that affects none of these runs the same
# histories as the previous commit, on every machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

files='{{if and .Module .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{end}}'
go list -deps -f "$files" ./pkg/simulation/histories | sed '/^$/d' | LC_ALL=C sort |
  xargs cat go.sum deploy/crds/*.yaml deploy/hub/crds/*.yaml | cksum | cut -d' ' -f1
