// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm/report"
)

// reported returns the report in the Job.
func (w *world) reported() report.Report {
	w.tb.Helper()
	var job batchv1.Job
	if err := w.client.Get(w.tb.Context(), client.ObjectKey{Namespace: "approver", Name: "job"}, &job); err != nil {
		w.tb.Fatal(err)
	}
	found, err := report.Parse(job.Annotations[report.Annotation], []string{job.Annotations[report.Part(0)]})
	if err != nil {
		w.tb.Fatal(err)
	}
	return found
}

// Before it has permission to approve, the program reports where it needs it. At its end, it
// reports the decisive InstallPlans.
func TestReport(t *testing.T) {
	t.Parallel()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "approver", Name: "job"}}
	w := newWorld(t, manual("a", "gitops", "g.v1 g.v2 g.v3"), manual("b", "quay", "q.v1"), automatic("other", "o.v1"), job)
	var early report.Report
	w.onTick = func(elapsed time.Duration) {
		if elapsed == time.Minute {
			early = w.reported()
		}
	}
	w.onPatch = func(name string) error {
		if strings.HasPrefix(name, "install-") && w.Since(startTime) < 2*time.Minute {
			return errors.New("forbidden")
		}
		return nil
	}
	printed, err := w.run(t.Context(), olm.Options{Timeout: 10 * time.Minute, Report: types.NamespacedName{Namespace: "approver", Name: "job"}})
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	want := report.New(3, []types.NamespacedName{{Namespace: "a", Name: "install-g-v2"}, {Namespace: "a"}, {Namespace: "b"}})
	if diff := cmp.Diff(want, early); diff != "" {
		t.Errorf("before it may approve (-want +got):\n%s", diff)
	}
	want.Plans[1].Name = "install-g-v3"
	if diff := cmp.Diff(want, w.reported()); diff != "" {
		t.Errorf("at its end (-want +got):\n%s", diff)
	}
}

// A result that cannot be reported does not count.
func TestReportThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, manual("a", "gitops", "g.v1"))
	printed, err := w.run(t.Context(), olm.Options{Timeout: 5 * time.Minute, Report: types.NamespacedName{Namespace: "approver", Name: "deleted"}})
	if !errors.Is(err, olm.ErrNotUpgraded) || !strings.Contains(err.Error(), "reporting to Job deleted") {
		t.Errorf("got %v\n%s", err, printed)
	}
}
