#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that what hack/update-mocks.sh writes is up to date.
set -euo pipefail

exec "$(dirname "${BASH_SOURCE[0]}")/compare-generated.sh" mocks pkg/notify/webhook pkg/steps/silence
