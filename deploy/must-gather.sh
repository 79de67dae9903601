#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Collects what explains an upgrade: the objects of the Managed Upgrade Operator, the objects of the cluster that it
# decides by, their Events, the Leases, the configurations, and the logs. It reads no Secret, and changes nothing.
#
#   deploy/must-gather.sh FOLDER                                         with oc or kubectl at hand
#   oc adm must-gather -- /bin/bash -c "$(cat deploy/must-gather.sh)"    in a pod of the cluster
#
# `oc update status --replay FOLDER` judges what it has collected. What cannot be read is named in errors.txt.
set -uo pipefail

folder=${1:-/must-gather}
mkdir -p "$folder" || {
  echo "$0: cannot write to $folder; name another folder: $0 FOLDER" >&2
  exit 1
}
cd "$folder" || exit 1
client=$(command -v oc || command -v kubectl) || {
  echo "$0: neither oc nor kubectl is installed" >&2
  exit 1
}

# save FILE ARGUMENT... writes what the client prints to a file. Nothing to print leaves no file.
save() {
  local file=$1
  shift
  mkdir -p "$(dirname "$file")"
  "$client" "$@" >"$file" 2>message.txt || sed "s|^|$*: |" message.txt >>errors.txt
  [[ -s $file ]] || rm -f "$file"
}

# no_objects VERSION KIND prints an empty list, which says that there are no objects of the kind.
no_objects() {
  printf 'apiVersion: %s\nkind: %sList\nitems: []\n' "$1" "$2"
}

# save_list FILE VERSION KIND ARGUMENT... saves the objects of a kind.
save_list() {
  local file=$1 version=$2 kind=$3
  shift 3
  save "$file" "$@" -o yaml
  ! grep -qx 'items: \[\]' "$file" 2>/dev/null || no_objects "$version" "$kind" >"$file"
}

# save_kinds FOLDER GROUP PREFIX saves the objects of the kinds of an API group whose names start so, one kind a file.
save_kinds() {
  local name version kind
  "$client" api-resources --api-group="$2" --verbs=list --no-headers 2>>errors.txt | awk '{print $1, $(NF-2), $NF}' |
    while read -r name version kind; do
      [[ $name == "$3"* ]] || continue
      save_list "$1/$name.$2.yaml" "$version" "$kind" get "$name.$2" -A
    done
}

: >errors.txt
save version.txt version
save_kinds objects upgrade.managed.openshift.io ''
save_kinds objects managedupgrade.appuio.io ''
save_kinds objects config.openshift.io update
save_kinds objects cluster.open-cluster-management.io managedclustersupgrades
[[ ! -s objects/managedclustersupgrades.cluster.open-cluster-management.io.yaml ]] ||
  save objects/manifestworks.yaml get manifestworks -A -l upgrade.managed.openshift.io/managed-clusters-upgrade -o yaml

for prefix in clusterversions clusteroperators infrastructures; do
  save_kinds cluster config.openshift.io "$prefix"
done
for group in machineconfiguration.openshift.io machine.openshift.io cluster.x-k8s.io; do
  save_kinds cluster "$group" machine
done
save_kinds cluster hypershift.openshift.io nodepools

# There are no objects of kinds that the API server does not serve.
if served=$("$client" api-resources --verbs=list --no-headers -o name 2>>errors.txt); then
  while read -r name version kind; do
    grep -qx "$name.${version%/*}" <<<"$served" || no_objects "$version" "$kind" >"cluster/no-$name.${version%/*}.yaml"
  done <<END
upgradeconfigs upgrade.managed.openshift.io/v1alpha1 UpgradeConfig
upgradeconfigs managedupgrade.appuio.io/v1beta1 UpgradeConfig
upgradejobs managedupgrade.appuio.io/v1beta1 UpgradeJob
updateinformers config.openshift.io/v1beta1 UpdateInformer
machinesets machine.openshift.io/v1beta1 MachineSet
machinesets cluster.x-k8s.io/v1beta1 MachineSet
machinedeployments cluster.x-k8s.io/v1beta1 MachineDeployment
nodepools hypershift.openshift.io/v1beta1 NodePool
machineosbuilds machineconfiguration.openshift.io/v1 MachineOSBuild
END
fi

save_kinds cluster policy poddisruptionbudgets
save cluster/nodes.yaml get nodes -o yaml
save cluster/customresourcedefinitions.yaml get customresourcedefinitions -o yaml
save cluster/locks.yaml get leases -A --field-selector metadata.name=cluster-upgrade -o yaml

# The pods that drains wait for are on cordoned nodes.
for node in $("$client" get nodes -o 'jsonpath={.items[?(@.spec.unschedulable)].metadata.name}' 2>>errors.txt); do
  save "pods/$node.yaml" get pods -A --field-selector "spec.nodeName=$node" -o yaml
done

for version in upgrade.managed.openshift.io/v1alpha1 managedupgrade.appuio.io/v1beta1 config.openshift.io/v1 config.openshift.io/v1beta1 \
  cluster.open-cluster-management.io/v1beta1; do
  save_list "events/${version/\//-}.yaml" v1 Event get events -A --field-selector "involvedObject.apiVersion=$version"
done
save_list events/nodes.yaml v1 Event get events -A --field-selector involvedObject.kind=Node

namespaces=$("$client" get deployments,serviceaccounts -A -l app.kubernetes.io/part-of=managed-upgrade-operator \
  -o 'jsonpath={range .items[*]}{.metadata.namespace}{"\n"}{end}' 2>>errors.txt | sort -u)
for namespace in ${namespaces:-managed-upgrade-operator}; do
  for kind in deployments pods leases configmaps events jobs; do
    save "namespaces/$namespace/$kind.yaml" get "$kind" -n "$namespace" -o yaml
  done
  for program in managed-upgrade-operator update-status-controller managed-upgrade-hub; do
    save "namespaces/$namespace/$program.log" logs -n "$namespace" -l "app.kubernetes.io/name=$program" --all-containers --prefix --tail=-1
    save "namespaces/$namespace/$program.previous.log" logs -n "$namespace" -l "app.kubernetes.io/name=$program" --all-containers --prefix --tail=-1 --previous
  done
done

rm -f message.txt
[[ -s errors.txt ]] || rm errors.txt
echo "collected $(find . -type f | wc -l) files in $PWD"
