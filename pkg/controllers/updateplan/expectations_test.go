// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// expectEvents checks the reasons of the Events about the plan for the target.
func (w *world) expectEvents(reasons ...string) {
	w.TB.Helper()
	var got []string
	for _, event := range w.events {
		_, text, _ := strings.Cut(event, " ")
		reason, _, _ := strings.Cut(text, ":")
		got = append(got, reason)
	}
	if !slices.Equal(got, reasons) {
		w.TB.Errorf("the Events are %s, want the reasons %s", strings.Join(w.events, "\n"), reasons)
	}
}

// informer registers an enabled update informer.
func (w *world) informer(name string) {
	w.TB.Helper()
	w.Create(&updatev1beta1.UpdateInformer{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: updatev1beta1.UpdateInformerSpec{
		ClientConfig: updatev1beta1.InformerClientConfig{Service: updatev1beta1.InformerService{Namespace: "a", Name: name, Port: 443}},
	}})
}

func (w *world) get(release string) *updatev1beta1.UpdatePlan {
	w.TB.Helper()
	return simulation.Get(w.Harness, client.ObjectKey{Name: updateplan.Name(release)}, &updatev1beta1.UpdatePlan{})
}

// expect checks the reasons of the conditions Complete, Startable, and AcceptanceStale.
func (w *world) expect(complete, startable, stale string) {
	w.TB.Helper()
	plan := w.get(target)
	var got []string
	for _, name := range []string{updatev1beta1.ConditionComplete, updatev1beta1.ConditionStartable, updatev1beta1.ConditionAcceptanceStale} {
		c := apimeta.FindStatusCondition(plan.Status.Conditions, name)
		if c == nil {
			w.TB.Fatalf("the plan has no condition %s", name)
			return
		}
		got = append(got, c.Reason)
	}
	if want := []string{complete, startable, stale}; !slices.Equal(got, want) {
		w.TB.Errorf("the reasons are %v, want %v: %+v", got, want, plan.Status.Conditions)
	}
}
