#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the dashboards for the OpenShift console and Grafana from hack/dashboards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go run ./hack/dashboards
