#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# undeploy.sh FOLDER
#
# Removes what `oc apply -k FOLDER` has installed from the current cluster, and always ends: it deletes
# the objects of our kinds first and waits until the operator has undone what their upgrades did in the
# cluster. It does not wait for an operator without an available replica. It removes our finalizers from
# what is left after TIMEOUT, which is 15m by default. docs/decisions/0048 has the reasons.
#
# KUBECTL is the client, oc or kubectl, and may have arguments.
set -euo pipefail

folder=${1:?the folder is missing, for example deploy}
read -ra kubectl <<<"${KUBECTL:-kubectl}"
timeout=${TIMEOUT:-15m}
[[ $timeout =~ ^([0-9]+)([sm])$ ]] || { echo "undeploy.sh: TIMEOUT is $timeout, must be minutes or seconds such as 15m" >&2; exit 2; }
seconds=${BASH_REMATCH[1]}
[[ ${BASH_REMATCH[2]} == s ]] || seconds=$((seconds * 60))

manifests=$("${kubectl[@]}" kustomize "$folder")

# named KIND: prints "NAMESPACE NAME" of the objects of a kind in the manifests.
named() {
  awk -v kind="$1" '
    function flush() { if (found) print (namespace == "" ? "-" : namespace), name; found = 0; name = namespace = "" }
    /^---$/ { flush() }
    $0 == "kind: " kind { found = 1 }
    /^  name: / && name == "" { name = $2 }
    /^  namespace: / && namespace == "" { namespace = $2 }
    END { flush() }' <<<"$manifests"
}

# The kinds that are served. The UpgradeConfigs that create UpgradeJobs come first.
kinds=()
while read -r _ crd; do
  if "${kubectl[@]}" get customresourcedefinition "$crd" >/dev/null 2>&1; then kinds+=("$crd"); fi
done < <(named CustomResourceDefinition | sort)

# left: prints "KIND NAMESPACE NAME FINALIZER..." of each object of our kinds, and of each Job of a hook
# that has not been recorded.
left() {
  local kind template='{{range .items}}{{or .metadata.namespace "-"}} {{.metadata.name}}{{range .metadata.finalizers}} {{.}}{{end}}{{"\n"}}{{end}}'
  for kind in "${kinds[@]}"; do
    "${kubectl[@]}" get "$kind" --all-namespaces -o go-template="$template" | sed "s|^|$kind |"
  done
  "${kubectl[@]}" get jobs.batch --all-namespaces -o go-template="$template" |
    sed -n '/ managedupgrade.appuio.io\/hook-result/s|^|jobs.batch |p'
}

# The programs that serve finalizers, whether the folder has them or not.
available=$("${kubectl[@]}" get deployments --all-namespaces \
  --selector='app.kubernetes.io/name in (managed-upgrade-operator, managed-upgrade-hub)' \
  -o go-template='{{range .items}}{{if .status.availableReplicas}}{{.metadata.name}} {{end}}{{end}}')

for kind in "${kinds[@]}"; do
  "${kubectl[@]}" delete "$kind" --all --all-namespaces --wait=false
done
deadline=$((SECONDS + seconds))
while [[ -n $available ]] && ((SECONDS < deadline)) && [[ -n $(left) ]]; do
  echo "waiting for the operator to undo upgrades: $(left | cut -d' ' -f1-3 | paste -sd, -)"
  sleep 5
done

# Without the operator, no finalizer comes back.
while read -r namespace name; do
  "${kubectl[@]}" delete deployment "$name" --namespace="$namespace" --ignore-not-found --cascade=foreground --timeout=2m
done < <(named Deployment)
while read -r kind namespace name finalizers; do
  kept=()
  for finalizer in $finalizers; do
    case $finalizer in
      upgrade.managed.openshift.io/* | managedupgrade.appuio.io/*) ;;
      *) kept+=("\"$finalizer\"") ;;
    esac
  done
  echo "removing the finalizers of $kind $name: the operator has not undone its upgrade"
  in_namespace=()
  [[ $namespace == - ]] || in_namespace=("--namespace=$namespace")
  "${kubectl[@]}" patch "$kind" "$name" "${in_namespace[@]}" --type=merge \
    --patch "{\"metadata\": {\"finalizers\": [$(IFS=,; echo "${kept[*]-}")]}}" ||
    echo "$kind $name is gone"
done < <(left)

"${kubectl[@]}" delete -k "$folder" --ignore-not-found
pools=$("${kubectl[@]}" get machineconfigpools -o jsonpath='{range .items[?(@.spec.paused==true)]}{.metadata.name} {end}' 2>/dev/null) || pools=
[[ -z $pools ]] || echo "these pools are paused, and their nodes are not updated; see docs/uninstall.md: $pools"
