// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// object is an object of the API, or a part of one.
type object = map[string]any

// started is when the upgrades of the dumps started, and judged is the time of the pages.
var (
	started = time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	judged  = at(142)
)

func at(minutes int) time.Time { return started.Add(time.Duration(minutes) * time.Minute) }

func named(namespace, name string) object {
	return object{"namespace": namespace, "name": name, "uid": namespace + "-" + name}
}

// write writes objects into a folder, as "oc get -o json" prints them.
func write(t *testing.T, objects []object) string {
	t.Helper()
	content, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "objects.json"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// step is a step of a history. It still runs if until is 0.
func step(name string, from, until int, status, message string) object {
	s := object{"type": name, "status": status, "reason": "Upgrading", "message": message, "startTime": at(from)}
	if until > 0 {
		s["completeTime"] = at(until)
	}
	if status == "True" {
		s["reason"] = "Done"
	}
	return s
}

// clusterDump is an upgrade that failed: one node did not come back.
func clusterDump(t *testing.T) string {
	t.Helper()
	own := object{"kind": "UpgradeConfig", "name": "cluster", "namespace": "managed-upgrade-operator", "uid": "managed-upgrade-operator-cluster"}
	event := func(name string, about object, kind, reason, message string, minute int) object {
		namespace, _ := about["namespace"].(string)
		if namespace == "" {
			namespace = "default"
		}
		return object{
			"apiVersion": "v1", "kind": "Event", "metadata": named(namespace, name), "involvedObject": about, "type": kind, "reason": reason, "message": message,
			"firstTimestamp": at(minute), "lastTimestamp": at(minute), "source": object{"component": "managed-upgrade-operator"},
		}
	}
	objects := []object{
		{"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": object{"name": "cluster"}, "status": object{"infrastructureName": "store-0388"}},
		{"apiVersion": "upgrade.managed.openshift.io/v1alpha1", "kind": "UpgradeConfig", "metadata": named("managed-upgrade-operator", "cluster"), "status": object{"history": []object{{
			"version": "4.20.6", "precedingVersion": "4.20.5", "phase": "Failed", "attempt": 2, "reason": "TimedOut", "message": "AllWorkerNodesUpgraded: node worker-3 is not ready",
			"startTime": at(0), "commenceTime": at(8), "completeTime": at(140),
			"previousAttempts": []object{{"attempt": 1, "phase": "Failed", "failedStep": "PreHealthCheck", "message": "ClusterOperator dns is degraded"}},
			"conditions": []object{
				step("StartedNotificationSent", 0, 1, "True", "the upgrade to 4.20.6 starts"), step("PreHealthCheck", 1, 6, "True", "the cluster is healthy"),
				step("ExternalDependenciesAvailable", 6, 7, "True", "the registry answers"), step("CommenceUpgrade", 7, 8, "True", "the cluster version operator has accepted 4.20.6"),
				step("ControlPlaneUpgraded", 8, 62, "True", "4.20.6 is installed"), step("RemoveControlPlaneMaintWindow", 62, 63, "True", "the silence is expired"),
				step("AllWorkerNodesUpgraded", 63, 140, "False", "node worker-3 is not ready"),
			},
		}}}},
		event("started", own, "Normal", "UpgradeStarted", "the upgrade to 4.20.6 starts", 0), event("failed", own, "Warning", "UpgradeFailed", "AllWorkerNodesUpgraded: node worker-3 is not ready", 140),
	}
	node := func(name string, events map[string]int) {
		for reason, minute := range events {
			e := event(name+"-"+reason, object{"kind": "Node", "name": name}, "Normal", reason, name+" is now "+reason, minute)
			e["source"] = object{"component": "kubelet"}
			objects = append(objects, e)
		}
	}
	for i := range 3 {
		from := 64 + 14*i
		node(fmt.Sprintf("worker-%d.store-0388.example.com", i), map[string]int{"NodeNotSchedulable": from, "NodeNotReady": from + 5, "NodeReady": from + 10, "NodeSchedulable": from + 12})
	}
	node("worker-3.store-0388.example.com", map[string]int{"NodeNotSchedulable": 108, "NodeNotReady": 114})
	return write(t, objects)
}

// stores is the number of clusters of the fleet. The first three are canaries.
const stores = 1203

// stateOf returns the state of a cluster by its number.
func stateOf(n int) string {
	switch {
	case n == 187 || n == 154:
		return "Failed"
	case n < 184:
		return "Complete"
	case n < 212:
		return "PartialUpgrade"
	case n < 216:
		return "Initialized"
	}
	return "NotStarted"
}

// counters counts the clusters of a range by state, as the hub publishes them.
func counters(from, to int) object {
	count := map[string]int{}
	for n := from; n < to; n++ {
		count[stateOf(n)]++
	}
	return object{
		"total": to - from, "initialized": count["Initialized"], "partialUpgrade": count["PartialUpgrade"], "complete": count["Complete"], "failed": count["Failed"], "pending": count["NotStarted"],
	}
}

// group returns the counters of a group.
func group(index, from, to int) object {
	g := counters(from, to)
	g["index"] = index
	return g
}

// fleetDump is the upgrade of a fleet with two failed clusters and a slow one.
func fleetDump(t *testing.T) string {
	t.Helper()
	hash := sha256.Sum256([]byte("fleet-stores"))
	runName := "stores-" + hex.EncodeToString(hash[:4])
	objects := []object{
		{
			"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "ManagedClustersUpgrade",
			"metadata": object{"namespace": "fleet", "name": "stores", "uid": "fleet-stores", "generation": 1},
			"spec": object{
				"placement": []object{{"name": "all"}}, "clusterVersion": object{"version": "4.20.6"},
				"upgradeStrategy": object{"rolloutType": "ProgressivePerGroup", "maxConcurrency": 40, "maxFailures": 14, "canaryClusters": object{"clusterSelector": object{"matchLabels": object{"canary": "yes"}}}},
			},
			"status": object{
				"observedGeneration": 1, "attempt": 1, "startTime": at(0), "clustersSummery": counters(0, stores), "canaryClustersSummery": counters(0, 3),
				"groups": []object{group(1, 3, 123), group(2, 123, 403), group(3, 403, stores)},
				"causes": []object{
					{"type": "Failed", "reason": "ClusterVersionFailing", "count": 2, "clusters": []string{"store-0154", "store-0187"}, "message": "etcd is degraded"},
					{"type": "Stalled", "reason": "ClusterUpgraded", "count": 1, "clusters": []string{"store-0202"}, "message": "waiting on machine-config"},
				},
				"conditions": []object{{"type": "Admitting", "status": "True", "reason": "Open", "message": "", "lastTransitionTime": at(0), "observedGeneration": 1}},
			},
		},
		{"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "metadata": named("fleet", "all"), "status": object{"numberOfSelectedClusters": stores}},
	}
	for i, edge := range [][2]int{{0, 123}, {123, 403}, {403, stores}} {
		var decisions []object
		for n := edge[0]; n < edge[1]; n++ {
			decisions = append(decisions, object{"clusterName": store(n), "reason": ""})
			objects = append(objects, member(n, runName, i+1)...)
		}
		metadata := named("fleet", fmt.Sprintf("all-%d", i))
		metadata["labels"] = object{"cluster.open-cluster-management.io/placement": "all", "cluster.open-cluster-management.io/decision-group-index": fmt.Sprint(i)}
		objects = append(objects, object{"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision", "metadata": metadata, "status": object{"decisions": decisions}})
	}
	return write(t, objects)
}

func store(n int) string { return fmt.Sprintf("store-%04d", n) }

// member returns a cluster, and its run if it has begun.
func member(n int, runName string, groupIndex int) []object {
	metadata := object{"name": store(n), "labels": object{}}
	if n < 3 {
		metadata["labels"] = object{"canary": "yes"}
	}
	cluster := object{
		"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": metadata, "spec": object{"hubAcceptsClient": true},
		"status": object{"conditions": []object{{"type": "ManagedClusterConditionAvailable", "status": "True", "reason": "Available", "message": "", "lastTransitionTime": at(0)}}},
	}
	state := stateOf(n)
	if state == "NotStarted" {
		return []object{cluster}
	}
	record := object{"version": "4.20.6", "precedingVersion": "4.20.5", "attempt": 1, "phase": "Upgrading", "startTime": at(20)}
	steps := []object{step("PreUpgradeActionAvailable", 20, 24, "True", "the backup is complete"), step("UpgradeDelivered", 24, 26, "True", "the agent has applied the upgrade")}
	status := object{"attempt": 1, "state": state, "reason": "ClusterUpgraded", "startTime": at(20)}
	switch state {
	case "Complete":
		steps = append(steps, step("ClusterUpgraded", 26, 70+n%20, "True", "4.20.6 is installed"), step("OperatorsUpgraded", 70+n%20, 75+n%20, "True", "3 operators are upgraded"))
		record["phase"], record["completeTime"], status["completionTime"] = "Upgraded", at(75+n%20), at(75+n%20)
		status["reason"] = "Upgraded"
	case "Failed":
		steps = append(steps, step("ClusterUpgraded", 26, 90, "False", "etcd is degraded"))
		record["phase"], record["completeTime"], record["message"], status["completionTime"] = "Failed", at(90), "etcd is degraded", at(90)
		status["reason"], status["message"] = "ClusterVersionFailing", "etcd is degraded"
	case "PartialUpgrade":
		steps = append(steps, step("ClusterUpgraded", 26, 0, "Unknown", "Working towards 4.20.6: 780 of 900 done (86% complete)"))
		status["message"] = "Working towards 4.20.6: 780 of 900 done (86% complete)"
		conditions := []object{{"type": "Progressing", "status": "True", "reason": "ClusterUpgraded", "message": "", "lastTransitionTime": at(26)}}
		if n == 202 {
			conditions = append(conditions, object{"type": "Slow", "status": "True", "reason": "ClusterUpgraded", "message": "ClusterUpgraded is slow: waiting on machine-config", "lastTransitionTime": at(140)})
		}
		status["conditions"] = conditions
	}
	record["conditions"] = steps
	status["history"] = []object{record}
	runMetadata := named(store(n), runName)
	runMetadata["labels"] = object{"upgrade.managed.openshift.io/managed-clusters-upgrade": "fleet-stores"}
	return []object{cluster, {
		"apiVersion": "upgrade.managed.openshift.io/v1alpha1", "kind": "ClusterUpgradeRun", "metadata": runMetadata, "status": status,
		"spec": object{
			"managedClustersUpgrade": object{"namespace": "fleet", "name": "stores", "uid": "fleet-stores"}, "attempt": 1, "admissionTime": at(20), "canary": n < 3, "group": groupIndex,
			"clusterVersion": object{"version": "4.20.6"},
		},
	}}
}
