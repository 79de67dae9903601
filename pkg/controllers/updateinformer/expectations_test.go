// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer_test

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
)

// took returns the requests to the informer since the last call.
func (w *world) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	requests := w.requests
	w.requests = nil
	return requests
}

// conditions returns the conditions in the form type=status:reason.
func (w *world) conditions() []string {
	w.t.Helper()
	var informer updatev1beta1.UpdateInformer
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Name: "shop"}, &informer))
	var all []string
	for _, c := range informer.Status.Conditions {
		all = append(all, c.Type+"="+string(c.Status)+":"+c.Reason)
	}
	return all
}

// condition returns a condition.
func (w *world) condition(name string) updatev1beta1.InformerCondition {
	w.t.Helper()
	var informer updatev1beta1.UpdateInformer
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Name: "shop"}, &informer))
	for _, c := range informer.Status.Conditions {
		if c.Type == name {
			return c
		}
	}
	return updatev1beta1.InformerCondition{}
}

// result returns the latest answer about the update in progress.
func (w *world) result() insight.Answer {
	w.t.Helper()
	answers := w.Answers()
	if len(answers) != 1 {
		w.t.Fatalf("got %d answers", len(answers))
	}
	return answers[0]
}
