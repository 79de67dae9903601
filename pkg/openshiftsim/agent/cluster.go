// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/spoke"
)

// jobDuration is the duration of a Job.
const jobDuration = time.Second

// object is an object without a Go type.
type object = map[string]any

// cluster is a simulated cluster that follows its script.
type cluster struct {
	mu sync.Mutex
	*spoke.Cluster
}

// newCluster returns a cluster that was installed at the given time.
func newCluster(name, version string, at time.Time) *cluster {
	c := &cluster{Cluster: spoke.New(name, version, at)}
	for _, condition := range []struct{ name, status, reason, message string }{
		{"Available", "True", "AsExpected", "Done applying " + version},
		{"Progressing", "False", "ClusterVersionProgressing", "Cluster version is " + version},
		{"Failing", "False", "AsExpected", ""},
		{"ReleaseAccepted", "True", "PayloadLoaded", "Payload loaded"},
		{"Upgradeable", "True", "AsExpected", ""},
	} {
		c.SetCondition(c.Version(), condition.name, condition.status, condition.reason, condition.message, at)
	}
	return c
}

// newest returns the release and start time of the newest entry in the history, and whether its
// update is complete.
func (c *cluster) newest() (release string, started time.Time, completed bool) {
	release, state, _ := strings.Cut(c.History()[0], " ")
	history, _, _ := unstructured.NestedSlice(c.Version().Object, "status", "history")
	entry, _ := history[0].(object)
	text, _ := entry["startedTime"].(string)
	started, _ = time.Parse(time.RFC3339, text) // this program wrote it
	return release, started, state == "Completed"
}

// advance simulates the cluster up to the given time.
func (c *cluster) advance(s *script, now time.Time) {
	if c.Version() == nil {
		return
	}
	for _, config := range c.Objects("UpgradeConfig") {
		c.start(config, now)
	}
	c.update(s, now)
	for _, config := range c.Objects("UpgradeConfig") {
		c.report(config, s, now)
	}
	for _, job := range c.Objects("Job") {
		c.run(job, now)
	}
}

// update simulates the cluster version operator.
func (c *cluster) update(s *script, now time.Time) {
	if release, _, _ := c.newest(); c.Desired() != "" && c.Desired() != release {
		c.Accept(c.Desired(), now)
	}
	c.Observe()
	release, started, completed := c.newest()
	elapsed := now.Sub(started)
	if completed {
		return
	}
	if !s.stuck() && elapsed >= s.duration {
		c.SetCondition(c.Version(), "Failing", "False", "AsExpected", "", now)
		c.Complete(now)
		return
	}
	percent := min(int(100*elapsed/s.duration), 99)
	if s.stuck() {
		percent = min(percent, 50)
	}
	c.SetCondition(c.Version(), "Progressing", "True", "ClusterVersionProgressing", fmt.Sprintf("Working towards %s: %d%% complete", release, percent), now)
	if s.fails != "" && elapsed >= s.duration/2 {
		c.SetCondition(c.Version(), "Failing", "True", "ClusterOperatorDegraded", s.fails, now)
		return
	}
	c.SetCondition(c.Version(), "Failing", "False", "AsExpected", "", now)
}

// start requests the update of an UpgradeConfig once upgradeAt has passed.
func (c *cluster) start(config *unstructured.Unstructured, now time.Time) {
	paused, _, _ := unstructured.NestedBool(config.Object, "spec", "paused")
	text, _, _ := unstructured.NestedString(config.Object, "spec", "upgradeAt")
	at, _ := time.Parse(time.RFC3339, text) // an invalid time counts as passed
	requested, _, _ := unstructured.NestedString(config.Object, "spec", "desired", "version")
	if newest, _, _ := c.newest(); !paused && !now.Before(at) && newest != requested && c.Desired() != requested {
		c.Request(requested)
	}
}

// report derives the status of an UpgradeConfig from the ClusterVersion and writes it.
func (c *cluster) report(config *unstructured.Unstructured, s *script, now time.Time) {
	release, _, _ := unstructured.NestedString(config.Object, "spec", "desired", "version")
	phase, succeeded, progressing, step, message := "New", "Unknown", "True", "Pending", "upgradeAt has not come"
	upgraded := object{"type": "ControlPlaneUpgraded", "status": "False"}
	if newest, started, completed := c.newest(); newest == release && completed {
		phase, succeeded, progressing, step, message = "Upgraded", "True", "False", "Completed", ""
		upgraded["status"], upgraded["completeTime"] = "True", started.UTC().Format(time.RFC3339)
	} else if newest == release {
		phase, step, message = "Upgrading", "ControlPlaneUpgraded", s.fails
	}
	c.SetCondition(config, "Accepted", "True", "Accepted", "", now)
	c.SetCondition(config, "Progressing", progressing, step, message, now)
	c.SetCondition(config, "Succeeded", succeeded, phase, message, now)
	status, _ := config.Object["status"].(object)
	status["observedGeneration"] = config.GetGeneration()
	status["history"] = []any{object{"version": release, "phase": phase, "conditions": []any{upgraded}}}
}

// run starts a Job and completes it after jobDuration. A Job that approves operators finds no
// InstallPlans.
func (c *cluster) run(job *unstructured.Unstructured, now time.Time) {
	status, _ := job.Object["status"].(object)
	text, _ := status["startTime"].(string)
	started, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		job.Object["status"] = object{"active": int64(1), "startTime": now.UTC().Format(time.RFC3339)}
		c.BeginJob(job)
	case status["active"] != nil && !now.Before(started.Add(jobDuration)):
		delete(status, "active")
		status["succeeded"] = int64(1)
		c.EndJob(job, "Complete", now)
	}
}
