#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# build-tool.sh NAME MODULE PACKAGE COLD [TAGS]
#
# Builds the tool NAME from PACKAGE, at the version that hack/tools/MODULE pins, with the build tags
# TAGS, and links bin/NAME to the result. COLD is printed: how long that takes on two cores without any
# cache. The result is kept as bin/NAME-VERSION-KEY. The key is a hash of the module's go.mod and
# go.sum, the toolchain, and the tags, so a kept bin/ serves any branch and any clone.
set -euo pipefail

name=$1 module=$2 package=$3 cold=$4 tags=${5:-}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root/hack/tools/$module"
export GOWORK=off CGO_ENABLED=0

version=$(go list -tags "$tags" -f '{{.Module.Version}}' "$package")
key=$(
  {
    cat go.mod go.sum
    go env GOVERSION GOOS GOARCH
    printf %s "$tags"
  } | git hash-object --stdin | cut -c1-8
)
built=$root/bin/$name-$version-$key

if [[ ! -x $built ]]; then
  echo "building $name $version (about $cold when nothing is cached)"
  ldflags="-s -w"
  if [[ $package == k8s.io/kubernetes/* ]]; then
    ldflags+=" -X k8s.io/component-base/version.gitVersion=$version -X k8s.io/client-go/pkg/version.gitVersion=$version"
  fi
  mkdir -p "$root/bin"
  # Two builds may run at once: each writes its own file, and renames it when it is complete.
  trap 'rm -f "$built.$$"' EXIT
  go build -trimpath -buildvcs=false -tags "$tags" -ldflags "$ldflags" -o "$built.$$" "$package"
  mv "$built.$$" "$built"
fi

# The link is replaced atomically, too, and is newer than the files that make compares it with.
touch "$built"
ln -sf "$(basename "$built")" "$root/bin/.$name.$$"
mv -f "$root/bin/.$name.$$" "$root/bin/$name"
