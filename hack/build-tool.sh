#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# build-tool.sh NAME MODULE PACKAGE COLD [TAGS]
#
# Builds the tool NAME from PACKAGE, at the version pinned in hack/tools/MODULE and with the build
# tags TAGS, and links bin/NAME to the result. COLD is printed: how long the build takes on two
# cores with empty caches. The result is kept as bin/NAME-VERSION-KEY. The key is a hash of the
# module's go.mod and go.sum, the toolchain, and the tags, so bin/ can be shared by branches and
# clones. A program in the folder KUBEBUILDER_ASSETS, where setup-envtest puts etcd,
# kube-apiserver, and kubectl, is linked instead of built.
set -euo pipefail

name=$1 module=$2 package=$3 cold=$4 tags=${5:-}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

link() { # link PROGRAM: replaces bin/NAME atomically
  mkdir -p "$root/bin"
  ln -sf "$1" "$root/bin/.$name.$$"
  mv -f "$root/bin/.$name.$$" "$root/bin/$name"
}

if [[ -n ${KUBEBUILDER_ASSETS:-} && -x $KUBEBUILDER_ASSETS/$name ]]; then
  echo "$name is that of KUBEBUILDER_ASSETS: $KUBEBUILDER_ASSETS/$name"
  link "$KUBEBUILDER_ASSETS/$name"
  exit
fi

cd "$root/hack/tools/$module"
export GOWORK=off CGO_ENABLED=0 GOGC=400 # fewer garbage collections of the compiler: less time, more memory

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
  # Two builds may run at the same time. Each writes its own file and renames it when it is
  # complete.
  trap 'rm -f "$built.$$"' EXIT
  "$root/hack/go-build.sh" -trimpath -buildvcs=false -tags "$tags" -ldflags "$ldflags" -o "$built.$$" "$package"
  mv "$built.$$" "$built"
fi

touch "$built" # newer than the files that make compares it with
link "$(basename "$built")"
