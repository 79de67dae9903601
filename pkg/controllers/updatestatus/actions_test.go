// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
)

// write is a write of the status that the API server has stored.
type write struct {
	at     time.Time
	bytes  int // changed by the write
	size   int // of the object
	status updatev1beta1.UpdateStatusStatus
}

// update requests an update, which makes no progress once it has begun.
func (w *world) update() {
	w.TB.Helper()
	version := w.script.ClusterVersion()
	version.Spec.Channel = w.script.Channel
	version.Spec.DesiredUpdate = &configv1.Update{Version: newRelease}
	w.Update(version)
}

// register creates UpdateInformers with these names.
func (w *world) register(names ...string) {
	w.TB.Helper()
	for _, name := range names {
		w.Must(w.User.Create(w.TB.Context(), &updatev1beta1.UpdateInformer{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: updatev1beta1.UpdateInformerSpec{ClientConfig: updatev1beta1.InformerClientConfig{
				Service: updatev1beta1.InformerService{Namespace: "shop", Name: "informer"},
			}},
		}))
	}
}

// answer sets the latest answers of the informers. Their insights were acquired now.
func (w *world) answer(answers ...insight.Answer) {
	for i := range answers {
		answers[i].At = w.Now()
	}
	w.answers = answers
	select {
	case w.changed <- event.GenericEvent{Object: &updatev1beta1.UpdateInformer{}}:
	default:
	}
}

// reports returns an informer's answer with insights of a level about the control plane.
func (w *world) reports(informer string, level updatev1beta1.Level, uids ...string) insight.Answer {
	answer := insight.Answer{Informer: informer, Result: insight.Success}
	for _, uid := range uids {
		answer.Insights = append(answer.Insights, updatev1beta1.Insight{
			UID: uid, AcquisitionTime: metav1.NewTime(w.Now()), Scope: updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane},
			Impact: updatev1beta1.InsightImpact{Level: level, Summary: "Summary of " + uid},
		})
	}
	return answer
}
