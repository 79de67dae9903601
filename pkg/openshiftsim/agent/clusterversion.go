// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/fieldwise"
)

// object is an object without a Go type.
type object = map[string]any

// entry is an entry in the history of a ClusterVersion.
type entry struct {
	version, image     string
	started, completed time.Time // zero until it happens
}

// clusterVersion simulates a cluster's ClusterVersion and cluster version operator.
type clusterVersion struct {
	generation int64
	spec       object
	owned      fieldwise.Owned // fields owned by the agent
	history    []entry         // newest first
	failing    time.Time
}

// newClusterVersion returns the ClusterVersion of a cluster installed at the given time.
func newClusterVersion(version string, at time.Time) *clusterVersion {
	return &clusterVersion{
		generation: 1, spec: object{
			"clusterID": "00000000-0000-4000-8000-000000000000",
			// Left by an earlier update by another client.
			"desiredUpdate": object{"version": version, "image": imageOf(version), "force": false, "architecture": ""},
		},
		history: []entry{{version: version, image: imageOf(version), started: at, completed: at}},
	}
}

// imageOf returns the pull spec of a release.
func imageOf(version string) string {
	return fmt.Sprintf("quay.io/openshift-release-dev/ocp-release@sha256:%x", sha256.Sum256([]byte(version)))
}

// apply applies the spec of a manifest like server-side apply.
func (v *clusterVersion) apply(spec object) {
	before := fmt.Sprint(v.spec)
	v.owned = fieldwise.Apply(v.spec, spec, v.owned)
	if fmt.Sprint(v.spec) != before {
		v.generation++
	}
}

// request requests an update unless it is the newest one. Like the cluster version operator, it
// compares images: a version with the image of another release does not request that version.
func (v *clusterVersion) request(version, image string, now time.Time) {
	if version == "" || v.history[0].version == version || image != "" && image != imageOf(version) {
		return
	}
	v.failing = time.Time{}
	v.history = slices.Insert(v.history, 0, entry{version: version, image: imageOf(version), started: now})
}

// advance simulates the cluster version operator up to the given time.
func (v *clusterVersion) advance(s *script, now time.Time) {
	if desired, is := v.spec["desiredUpdate"].(object); is {
		version, _ := desired["version"].(string)
		image, _ := desired["image"].(string)
		v.request(version, image, now)
	}
	newest := &v.history[0]
	if !newest.completed.IsZero() {
		return
	}
	halfway := newest.started.Add(s.duration / 2)
	switch {
	case s.fails != "" && v.failing.IsZero() && !now.Before(halfway):
		v.failing = now
	case s.fails == "":
		v.failing = time.Time{}
	}
	if end := newest.started.Add(s.duration); !s.stuck() && !now.Before(end) {
		newest.completed = now
	}
}

// percent returns the progress of the newest update in percent.
func (v *clusterVersion) percent(s *script, now time.Time) int {
	newest := &v.history[0]
	if !newest.completed.IsZero() {
		return 100
	}
	percent := int(100 * now.Sub(newest.started) / s.duration)
	if s.stuck() {
		return min(percent, 50)
	}
	return min(percent, 99)
}

// object returns the ClusterVersion as the cluster's API server would.
func (v *clusterVersion) object(s *script, now time.Time) object {
	newest := &v.history[0]
	history := make([]any, len(v.history))
	for i := range v.history {
		e := &v.history[i]
		one := object{"version": e.version, "image": e.image, "verified": true, "state": "Partial", "startedTime": stamp(e.started)}
		if !e.completed.IsZero() {
			one["state"], one["completionTime"] = "Completed", stamp(e.completed)
		}
		history[i] = one
	}
	progressing, message := "True", fmt.Sprintf("Working towards %s: %d%% complete", newest.version, v.percent(s, now))
	if !newest.completed.IsZero() {
		progressing, message = "False", "Cluster version is "+newest.version
	}
	failing := condition("Failing", "False", "AsExpected", "", newest.started)
	if !v.failing.IsZero() {
		failing = condition("Failing", "True", "ClusterOperatorDegraded", s.fails, v.failing)
	}
	return object{
		"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
		"metadata": object{"name": "version", "generation": v.generation}, "spec": v.spec,
		"status": object{
			"observedGeneration": v.generation, "history": history, "availableUpdates": []any{},
			"conditions": []any{
				condition("Available", "True", "AsExpected", "Done applying "+v.history[len(v.history)-1].version, v.history[len(v.history)-1].started),
				condition("Progressing", progressing, "ClusterVersionProgressing", message, newest.started),
				failing,
				condition("ReleaseAccepted", "True", "PayloadLoaded", "Payload loaded", newest.started),
				condition("Upgradeable", "True", "AsExpected", "", v.history[len(v.history)-1].started),
			},
		},
	}
}

// condition returns a condition of an object.
func condition(name, status, reason, message string, since time.Time) object {
	return object{"type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp(since)}
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
