#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# site.sh VERSION FOLDER
#
# Builds the documentation site from docs/ in FOLDER/VERSION, lists all versions in
# FOLDER/versions.json, and makes FOLDER/index.html redirect to VERSION. A link to a missing page
# is an error. HUGO is the program to call.
set -euo pipefail

version=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."

HUGO_PARAMS_VERSION=$version "${HUGO:-bin/hugo}" --source hack/site --destination "$folder/$version" --cleanDestinationDir --panicOnWarning --logLevel warn --noBuildLock
(cd "$folder" && printf '%s\n' */ | sed 's|/$||' | sort -rV | sed 's/.*/"&"/' | paste -s -d , | sed 's/.*/[&]/' > versions.json)
printf '<!DOCTYPE html><meta charset="utf-8"><title>Documentation</title><meta http-equiv="refresh" content="0; url=%s/">\n' "$version" > "$folder/index.html"
