// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// hostile returns an insight that exceeds every limit and contains characters that no informer should send.
func hostile(n int) updatev1beta1.Insight {
	long := strings.Repeat("\x1b[31m\u202eä<&>", 70) + "\n"
	if n%2 == 0 { // cleaning long texts takes most of the time
		long = "<&>"
	}
	ref := updatev1beta1.ResourceReference{APIVersion: long, Kind: fmt.Sprintf("Kind%d%s", n, long), Namespace: long, Name: fmt.Sprintf("%d-%s", n, long)}
	var refs []updatev1beta1.ResourceReference
	for i := range 18 * (n % 4 / 3) {
		r := ref
		r.Name = fmt.Sprintf("%d-%s", i, long)
		refs = append(refs, r)
	}
	levels := []updatev1beta1.Level{"critical", "fatal", updatev1beta1.Level(long), "", "error"}
	return updatev1beta1.Insight{
		UID: fmt.Sprintf("%d-%s", n%250, long), UUID: long, Flaps: -7, CausedBy: []string{"", long}, AcquisitionTime: metav1.NewTime(now.AddDate(n, 0, 0)),
		Scope:       updatev1beta1.InsightScope{Type: []updatev1beta1.ScopeType{"Moon", updatev1beta1.ScopeWorkerPool, updatev1beta1.ScopeControlPlane}[n%3], WorkerPool: refs, Resources: refs},
		Impact:      updatev1beta1.InsightImpact{Level: levels[n%len(levels)], ReportedLevel: long, Type: long, Reason: long, Summary: long, Description: strings.Repeat(long, 8)},
		Remediation: updatev1beta1.InsightRemediation{Reference: "https://" + long, Resolved: new(n%2 == 0), EstimatedFinish: long},
	}
}

// TestCompute_IsAccepted checks that the API server accepts the computed status during and after an update,
// whatever informers send.
func TestCompute_IsAccepted(t *testing.T) {
	t.Parallel()
	definitions, err := simulation.Definitions(os.DirFS("../../deploy/update-status/crds"))
	if err != nil {
		t.Fatal(err)
	}
	world := simulation.New(simulation.WorldOptions{Definitions: definitions})
	api := world.Client("test")
	object := &updatev1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName}}
	if err := api.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	var insights []updatev1beta1.Insight
	for n := range 390 {
		insights = append(insights, hostile(n))
	}
	state := insight.NewStore()
	results := []insight.Result{insight.Success, insight.Failure, insight.Wait, insight.Unreachable, insight.Invalid, insight.Disabled, "odd"}
	for pass, c := range []*cluster{newCluster(2, 0), newCluster(4, 1), newCluster(4, 3), newCluster(2, 0)} {
		c.node("worker-2").Labels = nil
		at := now.AddDate(0, 0, pass)
		for n := range 80 {
			state.Apply(insight.Answer{
				Informer: fmt.Sprintf("informer-%02d-%s", n, strings.Repeat("x", 200)), Result: results[(n+pass)%len(results)], Reason: strings.Repeat("é\n", 2000), Message: strings.Repeat("\x00m", 2000),
				Insights: insights[:min(1+(n%2)*4+len(insights)*max(0, 1-n), len(insights))], At: at,
			}, at)
		}
		object.Status = updatestatus.Compute(updatestatus.Input{Facts: c.factsAt(t, at), Insights: state, Previous: object.Status})
		if size := len(encode(t, object.Status)); size > updatestatus.MaxBytes {
			t.Errorf("pass %d: %d bytes", pass, size)
		}
		if notes := uidsOf(section(object.Status, ""), updatev1beta1.StatusControllerInformer); pass == 0 && !slices.Contains(notes, "Truncated/status") {
			t.Errorf("the status is not too large: %v", notes)
		}
		if err := api.Status().Update(t.Context(), object); err != nil {
			t.Fatalf("pass %d: %.2000s", pass, err.Error())
		}
	}
}
