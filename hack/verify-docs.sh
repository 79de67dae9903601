#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that what hack/update-docs.sh writes is up to date.
set -euo pipefail

exec "$(dirname "${BASH_SOURCE[0]}")/compare-generated.sh" docs docs/reference docs/runbooks docs/alerts
