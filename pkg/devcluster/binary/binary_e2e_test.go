// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package binary_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/binary"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
)

const alerting = `
name: alerting
binary: true
description: Alerts come and go, and Prometheus, Alertmanager and the receiver do.
cluster:
  masters: 1
  workers: 1
  speed: 240
  monitoring:
    alerts: [{alert: Smoke, labels: {severity: critical}}]
operator:
  config: {alerts: {url: ""}}
rules:
  - name: the receiver goes, and comes
    times: 2
    do: [{receiver: stop}, {receiver: start}]
  - name: all that can happen
    do:
      - fire: {alert: Fire, labels: {severity: critical, namespace: kitchen}}
      - alertmanager: stop
      - resolve: Smoke
      - alertmanager: start
      - prometheus: stop
      - prometheus: start
      - configure: {upgradeWindow: soon}
      - informer: {name: mine, break: status}
      - informer: {name: mine, response: Wait, message: collecting}
      - informer: {name: gone}
      - informer: {name: gone, stop: true}
      - informer: {name: gone, stop: true}
      - apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: all-happened, namespace: default}}
expect:
  notifications: [started, completed]
  never:
    - for: {kind: Alert, name: Smoke}
      that: size(object.status.silencedBy) > 1
    - for: {kind: CloudEvent}
      that: object.data.reason == "UpgradeFailed"
  eventually:
    - for: {kind: Alert, name: Fire, namespace: kitchen}
      that: object.status.state == "active"
    - for: {kind: Silence}
      that: object.createdBy == "managed-upgrade-operator"
  finally:
    - for: {kind: Alert, name: Fire}
      that: object.labels.severity == "critical"
    - for: {kind: CloudEvent}
      that: object.data.reason == "UpgradeCompleted"
    - for: {kind: ConfigMap, namespace: default, name: all-happened}
      that: "true"
`

func TestScenario_with_monitoring(t *testing.T) {
	ctrl.SetLogger(logr.Discard()) // the simulators have a log file
	story, err := scenario.Decode("alerting.yaml", []byte(alerting))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	world, err := binary.New(ctx, story, binary.WorldOptions{Dir: t.TempDir(), Repository: "../../.."})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := world.Stop(); err != nil {
			t.Error(err)
		}
	})
	run, err := scenario.Start(ctx, story, world, scenario.RunOptions{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	if problems := run.Wait(t.Context()); len(problems) > 0 {
		t.Fatalf("not as expected:\n- %s", strings.Join(problems, "\n- "))
	}
	checkInformers(t, world)
	running := world.Cluster.Monitoring
	if err := running.Resolve(t.Context(), "Smoke"); err == nil {
		t.Error("an alert fires that was resolved")
	}
	if err := running.Resolve(t.Context(), "Fire"); err != nil {
		t.Error(err)
	}
	pids := running.PIDs()
	if len(pids) != 2 {
		t.Errorf("got %v, want Prometheus and Alertmanager", pids)
	}
	if err := world.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

// checkInformers checks that both informers are registered, and that only the one that was not
// stopped is listening.
func checkInformers(t *testing.T, world *binary.World) {
	t.Helper()
	for name, listens := range map[string]bool{"mine": true, "gone": false} {
		var service corev1.Service
		if err := world.Cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: scenario.InformerNamespace, Name: name}, &service); err != nil {
			t.Fatal(err)
		}
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", net.JoinHostPort(service.Spec.ClusterIP, "8443"))
		if (err == nil) != listens {
			t.Errorf("informer %s listens: %v, want %t", name, err, listens)
		}
		if err == nil {
			_ = connection.Close()
		}
	}
}
