// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"slices"
	"strings"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// wakeAgent lets the agent act later.
func (w *world) wakeAgent(d time.Duration) {
	if !w.pending {
		w.pending = true
		w.After(d, func() { w.pending = false; w.sync() })
	}
}

// sync lets the agent answer each work.
func (w *world) sync() {
	if w.offline {
		return
	}
	works := simulation.List(w.Harness, &workv1.ManifestWorkList{}, client.InNamespace(cluster))
	for i := range works.Items {
		if work := &works.Items[i]; work.Name != w.held || !work.DeletionTimestamp.IsZero() {
			w.Must(w.spoke.Answer(w.TB.Context(), w.Client("agent"), work, w.Now(), func(release string) {
				if release != "" && !w.refuses {
					w.install(release)
				}
				w.runJobs()
			}))
		}
	}
}

// runJobs begins and finishes the Jobs of the cluster.
func (w *world) runJobs() {
	for _, job := range w.spoke.Objects("Job") {
		name, _, _ := strings.Cut(job.GetName(), "-")
		if !slices.Contains(w.begun, name) {
			w.begun = append(w.begun, name)
			w.spoke.BeginJob(job)
			w.wakeAgent(0)
		}
		if end := w.jobs[name]; end != "" {
			delete(w.jobs, name)
			w.change(time.Minute, func() { w.spoke.EndJob(job, end, w.Now()) })
		}
	}
}

// install lets the cluster version operator install a release.
func (w *world) install(release string) {
	w.change(time.Minute, func() {
		if w.spoke.Desired() != release || w.spoke.History()[0] == release+" Partial" || w.spoke.History()[0] == release+" Completed" {
			w.spoke.Observe()
			return
		}
		w.spoke.Accept(release, w.Now())
		if w.takes > 0 {
			w.change(w.takes, func() { w.spoke.Complete(w.Now()) })
		}
	})
}

// holdAgent keeps the agent from applying a work, for as long as releaseAgent is not called.
func (w *world) holdAgent(work string) { w.held = work }

func (w *world) releaseAgent() {
	w.held = ""
	w.wakeAgent(0)
}
