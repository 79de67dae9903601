#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints an UpgradeConfig that upgrades the current cluster to a version that is offered
# conditionally, in ten minutes, and that accepts all its risks by name. Read the risks first:
#
#   oc adm upgrade --include-not-recommended
#   deploy/samples/upgradeconfig-conditional.sh | oc apply -f -
set -euo pipefail

oc=$(command -v oc || command -v kubectl)
offer() { "$oc" get clusterversion version -o jsonpath="{.status.conditionalUpdates[0].$1}"; }
version=$(offer release.version)
if [[ -z $version ]]; then
  echo "no update is offered conditionally: see 'oc adm upgrade --include-not-recommended'" >&2
  exit 1
fi

cat <<END
apiVersion: upgrade.managed.openshift.io/v1alpha1
kind: UpgradeConfig
metadata:
  name: managed-upgrade-config
  namespace: ${NAMESPACE:-managed-upgrade-operator}
spec:
  type: OSD
  upgradeAt: "$(date -u -d '10 minutes' +%Y-%m-%dT%H:%M:%SZ)"
  PDBForceDrainTimeout: 60
  desired:
    version: "$version"
    channel: "$("$oc" get clusterversion version -o jsonpath='{.spec.channel}')"
    acceptedRisks:
$(for risk in $(offer 'risks[*].name'); do echo "      - \"$risk\""; done)
END
