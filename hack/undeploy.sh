#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# undeploy.sh FOLDER
#
# Removes everything that `oc apply -k FOLDER` has installed from the current cluster, and always
# terminates. It first deletes the objects of our kinds and waits until the operator has undone the
# effects of their upgrades on the cluster. It does not wait for an operator without available
# replicas. After TIMEOUT (15m by default), it removes our finalizers from the remaining objects.
# docs/decisions/0048 explains the reasons.
#
# It fails if a request fails whose response it needs. Run it again to continue.
#
# KUBECTL is the client, oc or kubectl, optionally with arguments.
set -euo pipefail

folder=${1:?the folder is missing, for example deploy}
read -ra kubectl <<<"${KUBECTL:-kubectl}"
timeout=${TIMEOUT:-15m}
[[ $timeout =~ ^([0-9]+)([sm])$ ]] || { echo "undeploy.sh: TIMEOUT is $timeout, must be minutes or seconds such as 15m" >&2; exit 2; }
seconds=${BASH_REMATCH[1]}
[[ ${BASH_REMATCH[2]} == s ]] || seconds=$((seconds * 60))

manifests=$("${kubectl[@]}" kustomize "$folder")

# manifests ARGUMENT...: runs hack/manifests on the manifests.
manifests() {
  go run -C "$(dirname "${BASH_SOURCE[0]}")/.." ./hack/manifests "$@" <<<"$manifests"
}

objects=$(manifests names)

# named KIND: prints "NAMESPACE NAME" of the objects of a kind in the manifests.
named() {
  local kind namespace name
  while read -r kind namespace name; do
    [[ $kind != "$1" ]] || echo "$namespace $name"
  done <<<"$objects"
}

# The kinds that are served. UpgradeConfigs that create UpgradeJobs come first.
kinds=()
hooks=
olm=
while read -r _ crd; do
  [[ $crd != upgradejobs.managedupgrade.appuio.io ]] || hooks=yes
  served=$("${kubectl[@]}" get customresourcedefinition "$crd" --ignore-not-found -o go-template='served{{with .metadata.labels}} {{index . "olm.managed"}}{{end}}')
  [[ -z $served ]] || kinds+=("$crd")
  [[ $served != 'served true' ]] || olm=yes
done < <(named CustomResourceDefinition | sort)

# The Operator Lifecycle Manager would recreate deleted objects as long as there is a
# ClusterServiceVersion.
if [[ -n $olm ]]; then
  installed=$("${kubectl[@]}" get clusterserviceversions.operators.coreos.com --all-namespaces --selector='!olm.copiedFrom' \
    -o go-template='{{range .items}}{{.metadata.name}} in namespace {{.metadata.namespace}}{{"\n"}}{{end}}')
  installed=$(sed -n '/^managed-upgrade-operator\.v/p' <<<"$installed")
  if [[ -n $installed ]]; then
    {
      echo "undeploy.sh: the Operator Lifecycle Manager has installed this: ClusterServiceVersion $installed"
      echo "Nothing was deleted. Uninstall it in this order, as docs/olm.md explains:"
      sed -n '/^## Uninstall/,$ { /^```sh/,/^```$/ { /^```/!p } }' "$(dirname "${BASH_SOURCE[0]}")/../docs/olm.md"
    } >&2
    exit 1
  fi
fi

# left: prints "KIND NAMESPACE NAME FINALIZER..." for each object of our kinds and each hook Job
# that has not been recorded. It fails if a request fails.
left() {
  local kind template='{{range .items}}{{or .metadata.namespace "-"}} {{.metadata.name}}{{range .metadata.finalizers}} {{.}}{{end}}{{"\n"}}{{end}}'
  for kind in ${kinds[@]+"${kinds[@]}"}; do
    "${kubectl[@]}" get "$kind" --all-namespaces -o go-template="$template" | sed "s|^|$kind |" || return 1
  done
  [[ -n $hooks ]] || return 0
  "${kubectl[@]}" get jobs.batch --all-namespaces -o go-template="$template" |
    sed -n '/ managedupgrade.appuio.io\/hook-result/s|^|jobs.batch |p' || return 1
}

# The programs that handle finalizers, even if they are not in the folder.
available=$("${kubectl[@]}" get deployments --all-namespaces \
  --selector='app.kubernetes.io/name in (managed-upgrade-operator, managed-upgrade-hub)' \
  -o go-template='{{range .items}}{{if .status.availableReplicas}}{{.metadata.name}} {{end}}{{end}}')

# An admission policy rejects the deletion of a commenced upgrade unless a reason is given.
for kind in ${kinds[@]+"${kinds[@]}"}; do
  case $kind in
    upgradeconfigs.upgrade.managed.openshift.io | upgradejobs.managedupgrade.appuio.io)
      "${kubectl[@]}" annotate "$kind" --all --all-namespaces --overwrite upgrade.managed.openshift.io/allow-deletion=uninstall
      ;;
  esac
done
for kind in ${kinds[@]+"${kinds[@]}"}; do
  "${kubectl[@]}" delete "$kind" --all --all-namespaces --wait=false
done
deadline=$((SECONDS + seconds))
while [[ -n $available ]] && ((SECONDS < deadline)); do
  if remaining=$(left); then
    [[ -n $remaining ]] || break
    echo "waiting for the operator to undo upgrades: $(cut -d' ' -f1-3 <<<"$remaining" | paste -sd, -)"
  else
    echo "waiting for the operator to undo upgrades: the API server does not list them"
  fi
  sleep 5
done

# The Deployments are removed only if the remaining upgrades are known.
left >/dev/null

# remove_deployment NAMESPACE NAME: deletes a Deployment and waits until its pods are gone. A pod
# on a node that is down stays until it is force-deleted, which invalidates its token.
remove_deployment() {
  local selector delete=(delete deployment "$2" --namespace="$1" --ignore-not-found --cascade=foreground --timeout=2m)
  selector=$("${kubectl[@]}" get deployment "$2" --namespace="$1" --ignore-not-found \
    -o go-template='{{range $key, $value := .spec.selector.matchLabels}}{{$key}}={{$value}},{{end}}')
  [[ -n $selector ]] || return 0
  if ! "${kubectl[@]}" "${delete[@]}"; then
    echo "deleting the pods of deployment $2 by force: they did not end; is a node down?"
    "${kubectl[@]}" delete pods --namespace="$1" --selector="${selector%,}" --force --grace-period=0 --timeout=2m
    "${kubectl[@]}" "${delete[@]}"
  fi
}

# Without the operator, no finalizers are added again.
while read -r namespace name; do
  remove_deployment "$namespace" "$name"
done < <(named Deployment)

remaining=$(left)
while read -r kind namespace name finalizers; do
  [[ -n $kind ]] || continue
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
  if ! "${kubectl[@]}" patch "$kind" "$name" "${in_namespace[@]}" --type=merge \
    --patch "{\"metadata\": {\"finalizers\": [$(IFS=,; echo "${kept[*]-}")]}}"; then
    found=$("${kubectl[@]}" get "$kind" "$name" "${in_namespace[@]}" --ignore-not-found -o name)
    [[ -z $found ]] || { echo "undeploy.sh: $kind $name keeps its finalizers; run the script again" >&2; exit 1; }
    echo "$kind $name is gone"
  fi
done <<<"$remaining"

# Keep a Namespace that contains another of our programs.
while read -r _ namespace; do
  others=$("${kubectl[@]}" get deployments --namespace="$namespace" \
    --selector=app.kubernetes.io/part-of=managed-upgrade-operator -o name)
  [[ -n $others ]] || continue
  echo "namespace $namespace stays, because it has $(paste -sd, - <<<"$others")"
  manifests=$(manifests without Namespace "$namespace")
done < <(named Namespace)

"${kubectl[@]}" delete --ignore-not-found -f - <<<"$manifests"
pools=$("${kubectl[@]}" get machineconfigpools -o jsonpath='{range .items[?(@.spec.paused==true)]}{.metadata.name} {end}' 2>/dev/null) || pools=
[[ -z $pools ]] || echo "these pools are paused, and their nodes are not updated; see docs/uninstall.md: $pools"
