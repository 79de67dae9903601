#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# release.sh VERSION
#
# Writes the contents of a release to dist: the archives and the manifest of the plugin, the
# manifests of each program with the image of the release, the Helm chart, the bundle for the
# Operator Lifecycle Manager, the section of the changelog, the list of Go modules, a software bill
# of materials, and checksums of all files. The same commit and Go version produce the same files.
#
# KUBECTL is the client, oc or kubectl, optionally with arguments.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:?the version is missing, for example v0.1.0}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]] || { echo "hack/release.sh: $version must be a version such as v0.1.0" >&2; exit 2; }
image=${IMG:?IMG is missing, the image of the release, for example registry.example.com/managed-upgrade-operator:$version}

changes=$(awk -v heading="## $version" '$0 == heading { found = 1; next } /^## / { found = 0 } found' CHANGELOG.md)
[[ -n $changes ]] || { echo "hack/release.sh: CHANGELOG.md has no section \"## $version\": write what changes for users" >&2; exit 1; }

rm -rf dist
hack/krew.sh "$version"
render() { # render FOLDER FILE
  hack/render.sh "$1" "$image" "$version" > "dist/$2"
}
render deploy install.yaml
render deploy/without-machine-api install-without-machine-api.yaml
render deploy/update-status install-update-status.yaml
render deploy/update-status/start-gate install-start-gate.yaml
render deploy/hub install-hub.yaml
hack/chart.sh "$version" "$image" dist/helm/managed-upgrade-operator
hack/archive.sh dist/helm > dist/managed-upgrade-operator.tgz
rm -r dist/helm
mkdir dist/olm
VERSION=$version IMG=$image OUT=$PWD/dist/olm hack/update-bundle.sh
hack/archive.sh dist/olm > dist/bundle.tar.gz
rm -r dist/olm
printf '%s\n' "$changes" > dist/CHANGELOG.md
go list -m all > dist/modules.txt
bin/cyclonedx-gomod mod -licenses -json -noserial -type application -output dist/sbom.cdx.json .
# The build must not depend on the time and the state of the working tree.
sed -i '/^ *"timestamp": /d' dist/sbom.cdx.json
(cd dist && find . -type f ! -name checksums.txt -printf '%P\n' | LC_ALL=C sort | xargs sha256sum > checksums.txt)
