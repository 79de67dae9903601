// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package upgradejobhook_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// A hook cannot use a Secret that a ServiceAccount of its namespace references, whatever the name
// of the Secret, and whichever existed first.
func TestHook_has_no_Secret_of_a_ServiceAccount(t *testing.T) {
	t.Parallel()
	for name, account := range map[string]*corev1.ServiceAccount{
		"a token":       {Secrets: []corev1.ObjectReference{{Name: "credentials"}}},
		"a pull secret": {ImagePullSecrets: []corev1.LocalObjectReference{{Name: "credentials"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mounts := strings.Replace(exits0, `"containers"`, `"volumes":[{"name":"v","secret":{"secretName":"credentials"}}],"containers"`, 1)
			w := newWorld(t, newHook("a", mounts, maintenancev1beta1.EventStart))
			w.Begin()
			w.RunFor(time.Minute)
			if got := accepted(w.hook("a")); !strings.HasPrefix(got, "True") {
				t.Errorf("a Secret that no ServiceAccount names: %s", got)
			}
			account.ObjectMeta = metav1.ObjectMeta{Namespace: w.hook("a").Namespace, Name: "installer"}
			w.Create(account, newUpgrade("first", nil))
			if got := step(w.runUntil("first", time.Hour), "StartHooksDone"); !strings.Contains(got, "ServiceAccountNotAllowed") || len(w.created) > 0 {
				t.Errorf("%s; Jobs %v", got, w.created)
			}
			w.Create(newHook("b", mounts, maintenancev1beta1.EventStart))
			w.RunFor(time.Minute)
			if got := accepted(w.hook("b")); !strings.HasPrefix(got, "False ServiceAccountNotAllowed") {
				t.Errorf("a Secret that a ServiceAccount names: %s", got)
			}
			w.Delete(account)
			w.RunFor(time.Minute)
			if got := accepted(w.hook("b")); !strings.HasPrefix(got, "True") {
				t.Errorf("a Secret that no ServiceAccount names any longer: %s", got)
			}
		})
	}
}
