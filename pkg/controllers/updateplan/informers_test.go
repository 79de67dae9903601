// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// remote simulates the exchange with update informers. It holds their answers by informer.
type remote struct {
	answers map[string]*insight.Answer
	asked   []hooksv1alpha.UpdatePlanInsightsRequest
	known   map[types.NamespacedName]bool
	changed chan event.GenericEvent
}

func (r *remote) AskPlan(plan types.NamespacedName, request hooksv1alpha.UpdatePlanInsightsRequest) {
	r.asked, r.known[plan] = append(r.asked, request), true
}

func (r *remote) ForgetPlan(plan types.NamespacedName) { delete(r.known, plan) }

func (r *remote) PlanAnswers(plan types.NamespacedName) ([]insight.Answer, bool) {
	var answers []insight.Answer
	for _, name := range slices.Sorted(maps.Keys(r.answers)) {
		if answer := r.answers[name]; r.known[plan] && answer != nil {
			answers = append(answers, *answer)
		}
	}
	return answers, r.known[plan]
}

// answer makes an informer answer all plans with warnings that have these UIDs.
func (w *world) answer(informer string, result insight.Result, uids ...string) {
	answer := insight.Answer{Informer: informer, Result: result, At: w.Now()}
	for _, uid := range uids {
		answer.Insights = append(answer.Insights, updatev1beta1.Insight{
			UID: uid, AcquisitionTime: metav1.NewTime(w.Now()),
			Scope: updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane}, Impact: updatev1beta1.InsightImpact{Level: updatev1beta1.LevelWarning, Summary: uid},
		})
	}
	w.remote.answers[informer] = &answer
	select {
	case w.remote.changed <- event.GenericEvent{Object: &updatev1beta1.UpdateInformer{}}:
	default:
	}
}

// metrics has no pods that a drain would move.
type metrics struct{ *world }

func (m metrics) Samples(_ context.Context, query string) ([]checks.Sample, error) {
	if m.metricsError != nil {
		return nil, m.metricsError
	}
	value := 1.0
	if strings.Contains(query, "allocatable") {
		value = 8
	}
	var samples []checks.Sample
	for _, resource := range []string{"cpu", "memory"} {
		for _, node := range []string{"worker-0", "worker-1"} {
			samples = append(samples, checks.Sample{Labels: map[string]string{"node": node, "resource": resource}, Value: value})
		}
	}
	return samples, nil
}

// ActiveAlerts implements checks.AlertSource.
func (w *world) ActiveAlerts(context.Context) ([]clusterstate.Alert, error) { return w.alerts, nil }

// PublishChange implements notify.ObjectPublisher.
func (w *world) PublishChange(_ context.Context, object client.Object, before any, _, reason, message string) {
	event := fmt.Sprintf("%s %s: %s", object.GetName(), reason, message)
	if change := simulation.JSON(w.TB, before) + event; !w.changes[change] {
		w.changes[change], w.events = true, append(w.events, event)
	}
}

// PublishOnce implements notify.ObjectPublisher.
func (w *world) PublishOnce(_ context.Context, object client.Object, _, reason, message string) error {
	if w.eventError != nil {
		return w.eventError
	}
	w.events = append(w.events, fmt.Sprintf("%s %s: %s", object.GetName(), reason, message))
	return nil
}
