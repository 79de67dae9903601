#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the archives of kubectl-update for the platforms in the krew manifest and writes the
# manifest. The output is in dist. The argument is the version, such as v0.1.0.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:?the version is missing, for example v0.1.0}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]] || { echo "hack/krew.sh: $version must be a version such as v0.1.0" >&2; exit 2; }
manifest=dist/openshift-update.yaml
mkdir -p dist
sed "s/VERSION/$version/; /^#/d" deploy/krew/openshift-update.yaml > "$manifest"
man=$(mktemp -d)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} CGO_ENABLED=0 go run -trimpath ./hack/commands man "$man" "$version"
for platform in $(sed -n 's/.*sha256: SHA256_//p' "$manifest"); do
  os=${platform%_*} folder=$(mktemp -d)
  extension=
  [[ $os != windows ]] || extension=.exe
  CGO_ENABLED=0 GOOS=$os GOARCH=${platform#*_} go build -trimpath -buildvcs=false -ldflags "-s -w -X github.com/managed-upgrade/managed-upgrade-operator/pkg/manager.version=$version" -o "$folder/kubectl-update$extension" ./cmd/kubectl-update
  GOOS=$os GOARCH=${platform#*_} hack/licenses.sh "$folder/licenses" ./cmd/kubectl-update
  cp LICENSE "$folder"
  if [[ $os != windows ]]; then
    cp deploy/krew/kubectl_complete-update "$folder"
    mkdir "$folder/man"
    cp -R "$man" "$folder/man/man1"
  fi
  archive=dist/kubectl-update_$platform.tar.gz
  hack/archive.sh "$folder" > "$archive"
  rm -r "$folder"
  sum=$(sha256sum "$archive")
  sed -i "s/SHA256_$platform\$/${sum%% *}/" "$manifest"
done
rm -r "$man"
echo "$manifest"
