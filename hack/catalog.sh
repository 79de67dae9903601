#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# catalog.sh BUNDLE...
#
# Prints a file-based catalog of the Operator Lifecycle Manager with these bundles, folders of
# hack/update-bundle.sh, oldest first: in the channel stable, each one upgrades from the version that it replaces.
#
# BUNDLE_IMAGE is the template of the images of the bundles, such as registry.example.com/bundle:v{{.Version}}.
set -euo pipefail

(($# > 0)) || { echo "hack/catalog.sh: name the folder of a bundle, for example deploy/olm/bundle" >&2; exit 2; }
opm=$(dirname "${BASH_SOURCE[0]}")/../bin/opm
csv=manifests/managed-upgrade-operator.clusterserviceversion.yaml

cat <<END
---
schema: olm.package
name: managed-upgrade-operator
defaultChannel: stable
---
schema: olm.channel
package: managed-upgrade-operator
name: stable
entries:
END
for bundle; do
  sed -n 's/^  name: \(managed-upgrade-operator\.v.*\)/  - name: \1/p; s/^  replaces: /    replaces: /p' "$bundle/$csv"
done
for bundle; do
  "$opm" render "$bundle" --output yaml --alpha-image-ref-template "${BUNDLE_IMAGE:-managed-upgrade-operator-bundle:v{{.Version\}\}}"
done
