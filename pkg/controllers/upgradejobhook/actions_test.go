// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package upgradejobhook_test

import (
	"errors"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/kubelet"
)

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, object := range objects {
		w.must(w.api.Create(w.t.Context(), object))
	}
}

func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	w.must(w.RunFor(d))
}

// runUntil runs until the UpgradeJob has ended.
func (w *world) runUntil(job string, limit time.Duration) history.Record {
	w.t.Helper()
	w.must(w.RunUntil(limit, func() bool { record := w.record(job); return record.CompleteTime != nil && w.Quiet() }))
	return w.record(job)
}

func newUpgrade(name string, labels map[string]string) *v1beta1.UpgradeJob {
	return &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       v1beta1.UpgradeJobSpec{StartAfter: "2026-03-01T12:00:00Z", StartBefore: "2026-03-02T12:00:00Z", DesiredVersion: v1beta1.DesiredVersion{Version: "4.20.6", Image: "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat("1", 64)}},
	}
}

// pod is the template of a pod with annotations that choose its behavior.
func podTemplate(annotations string) string {
	return `{"backoffLimit":0,"template":{"metadata":{"annotations":{` + annotations + `}},"spec":{"containers":[{"name":"notify","image":"example.com/notify:1"}]}}}`
}

var (
	exits0     = podTemplate("")
	exits1     = podTemplate(`"` + kubelet.ExitCode + `":"1"`)
	takes10m   = podTemplate(`"` + kubelet.Duration + `":"10m"`)
	neverEnds  = podTemplate(`"` + kubelet.NeverEnds + `":"true"`)
	imageFails = podTemplate(`"` + kubelet.ImagePull + `":"fail"`)
)

func newHook(name, template string, events ...v1beta1.HookEvent) *v1beta1.UpgradeJobHook {
	return &v1beta1.UpgradeJobHook{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1beta1.UpgradeJobHookSpec{
			Events: events, Template: v1beta1.HookJobTemplate{Spec: runtime.RawExtension{Raw: []byte(template)}},
		},
	}
}

func aborting(hook *v1beta1.UpgradeJobHook) *v1beta1.UpgradeJobHook {
	hook.Spec.FailurePolicy = v1beta1.HookFailureAbort
	return hook
}

func next(hook *v1beta1.UpgradeJobHook) *v1beta1.UpgradeJobHook {
	hook.Spec.Run = v1beta1.HookRunNext
	return hook
}

func selecting(hook *v1beta1.UpgradeJobHook, labels map[string]string) *v1beta1.UpgradeJobHook {
	hook.Spec.Selector = &v1beta1.LabelSelector{MatchLabels: labels}
	return hook
}

var errRefused = errors.New("refused")
