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

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
)

// runUntil runs until the UpgradeJob has ended.
func (w *world) runUntil(job string, limit time.Duration) history.Record {
	w.TB.Helper()
	w.Await(limit, func() bool { record := w.record(job); return record.CompleteTime != nil && w.Quiet() })
	return w.record(job)
}

func newUpgrade(name string, labels map[string]string) *maintenancev1beta1.UpgradeJob {
	return &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       maintenancev1beta1.UpgradeJobSpec{StartAfter: "2026-03-01T12:00:00Z", StartBefore: "2026-03-02T12:00:00Z", DesiredVersion: maintenancev1beta1.DesiredVersion{Version: "4.20.6", Image: "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat("1", 64)}},
	}
}

// podTemplate returns a Job spec whose pod annotations choose the behavior of the pod.
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

func newHook(name, template string, events ...maintenancev1beta1.HookEvent) *maintenancev1beta1.UpgradeJobHook {
	return &maintenancev1beta1.UpgradeJobHook{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: maintenancev1beta1.UpgradeJobHookSpec{
			Events: events, Template: maintenancev1beta1.HookJobTemplate{Spec: runtime.RawExtension{Raw: []byte(template)}},
		},
	}
}

func aborting(hook *maintenancev1beta1.UpgradeJobHook) *maintenancev1beta1.UpgradeJobHook {
	hook.Spec.FailurePolicy = maintenancev1beta1.HookFailureAbort
	return hook
}

func next(hook *maintenancev1beta1.UpgradeJobHook) *maintenancev1beta1.UpgradeJobHook {
	hook.Spec.Run = maintenancev1beta1.HookRunNext
	return hook
}

func selecting(hook *maintenancev1beta1.UpgradeJobHook, labels map[string]string) *maintenancev1beta1.UpgradeJobHook {
	hook.Spec.Selector = &maintenancev1beta1.LabelSelector{MatchLabels: labels}
	return hook
}

var errRefused = errors.New("refused")
