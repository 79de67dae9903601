#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints an UpgradeConfig that upgrades the current cluster to the newest version that its channel
# offers, in ten minutes:
#
#   deploy/samples/upgradeconfig.sh | oc apply -f -
#
# VERSION, CHANNEL, UPGRADE_AT, and NAMESPACE override what it chooses.
set -euo pipefail

oc=$(command -v oc || command -v kubectl)
channel=${CHANNEL:-$("$oc" get clusterversion version -o jsonpath='{.spec.channel}')}
version=${VERSION:-$("$oc" get clusterversion version -o jsonpath='{.status.availableUpdates[*].version}' |
  tr ' ' '\n' | sort -V | tail -n 1)}
if [[ -z $version ]]; then
  echo "no update is available in channel $channel: see 'oc adm upgrade'" >&2
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
  # The upgrade commences within 30 minutes from this time, or fails.
  upgradeAt: "${UPGRADE_AT:-$(date -u -d '10 minutes' +%Y-%m-%dT%H:%M:%SZ)}"
  # A PodDisruptionBudget may block the drain of a node for this many minutes.
  PDBForceDrainTimeout: 60
  desired:
    version: "$version"
    channel: "$channel"
END
