// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"strings"
	"testing"
	"time"
)

// As TestSupersededWhileTheOperatorWasDown, and the record is lost as well: the Lease proves the request.
func TestSupersededWhileTheOperatorWasDownAndTheRecordWasLost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]func(*world){
		"kept":    func(*world) {},
		"deleted": func(w *world) { w.remove(upgrade) },
		"deleted, and the finalizer removed": func(w *world) {
			w.remove(upgrade)
			cfg := w.get(upgrade)
			cfg.Finalizers = nil
			w.Update(cfg)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.AcceptDelay = time.Minute
			w.runUntilRequested()
			w.Process.Kill()
			w.RunFor(5 * time.Minute)
			w.requestElsewhere("4.4.7")
			w.RunFor(5 * time.Minute)
			channel := w.cluster.ClusterVersion().Spec.Channel
			w.clearStatus(upgrade)
			tc(w)
			w.Begin()
			w.RunFor(30 * time.Minute)
			if got := w.cluster.ClusterVersion().Spec; got.Channel != channel || got.DesiredUpdate == nil || got.DesiredUpdate.Version != "4.4.7" {
				t.Errorf("the channel was %s, the spec of the ClusterVersion is %+v", channel, got)
			}
			if name == "kept" {
				w.runUntil(func() bool { return w.isFinished(upgrade) })
				if got := w.condition("Succeeded"); !strings.HasPrefix(got, "False Superseded") {
					t.Errorf("Succeeded is %s; %s", got, w.describe())
				}
			}
		})
	}
}
