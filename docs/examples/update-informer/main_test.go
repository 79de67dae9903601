// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
)

// uids finds the notes on a cluster and returns their uids.
func uids(t *testing.T, cluster *fake.Clientset) ([]string, error) {
	t.Helper()
	insights, err := notes{cluster.CoreV1().ConfigMaps(namespace)}.find(t.Context(), hooksv1alpha.RequestSpec{})
	var found []string
	for _, in := range insights {
		found = append(found, in.UID)
	}
	return found, err
}

func TestNotes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		objects []runtime.Object
		want    []string
	}{
		"no ConfigMap": {},
		"no notes":     {objects: []runtime.Object{configMap(nil)}},
		"two notes":    {objects: []runtime.Object{configMap(map[string]string{"sale": "until Monday", "backup": "takes 2 h"})}, want: []string{"note/backup", "note/sale"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := uids(t, fake.NewClientset(tc.objects...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("uids (-want +got):\n%s", diff)
			}
		})
	}
}

// An error while reading the notes must not be taken for the absence of notes.
func TestNotesCannotBeRead(t *testing.T) {
	t.Parallel()
	cluster := fake.NewClientset()
	cluster.PrependReactor("get", "configmaps", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("forbidden")
	})
	if got, err := uids(t, cluster); err == nil {
		t.Errorf("%v without an error", got)
	}
}

func configMap(data map[string]string) *v1.ConfigMap {
	return &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "update-notes"}, Data: data}
}
