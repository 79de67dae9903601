// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// table is an upgrader with a fixed list of steps.
type table []engine.Step

func (t table) Runbook(upgraders.Attempt) engine.Runbook {
	return engine.Runbook{Steps: t}
}

func step(name string) engine.Step {
	return engine.Step{
		Name: name, Doc: "It does nothing.",
		Do: func(context.Context, engine.Run) (engine.Result, error) { return engine.Done("done"), nil },
	}
}

func commits(name string) engine.Step {
	s := step(name)
	s.Commit = &engine.Commit{Observe: func(context.Context, engine.Run) (engine.Observed, engine.Result, error) {
		return engine.ObservedNone, engine.Result{}, nil
	}}
	return s
}

// cluster returns the client configuration for an API server that only serves discovery of the
// operator's kinds.
func cluster(t *testing.T) *rest.Config {
	t.Helper()
	answers := map[string]string{
		"/version": `{"major": "1", "minor": "36"}`,
		"/api":     `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/api/v1":  `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "nodes", "kind": "Node"}]}`,
	}
	var groups []string
	for groupVersion, resources := range map[string]string{
		"coordination.k8s.io/v1":                `{"name": "leases", "kind": "Lease", "namespaced": true}`,
		"policy/v1":                             `{"name": "poddisruptionbudgets", "kind": "PodDisruptionBudget", "namespaced": true}`,
		"upgrade.managed.openshift.io/v1alpha1": `{"name": "upgradeconfigs", "kind": "UpgradeConfig", "namespaced": true}`,
		"config.openshift.io/v1":                `{"name": "clusterversions", "kind": "ClusterVersion"}, {"name": "clusteroperators", "kind": "ClusterOperator"}`,
		"machineconfiguration.openshift.io/v1":  `{"name": "machineconfigpools", "kind": "MachineConfigPool"}`,
	} {
		group, version, _ := strings.Cut(groupVersion, "/")
		groups = append(groups, fmt.Sprintf(`{"name": %q, "versions": [{"groupVersion": %q, "version": %q}], "preferredVersion": {"groupVersion": %q, "version": %q}}`,
			group, groupVersion, version, groupVersion, version))
		answers["/apis/"+groupVersion] = fmt.Sprintf(`{"kind": "APIResourceList", "groupVersion": %q, "resources": [%s]}`, groupVersion, resources)
	}
	answers["/apis"] = `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [` + strings.Join(groups, ", ") + `]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write([]byte(answer)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// skips is an upgrader whose upgrades can be skipped.
type skips struct{ table }

func (s skips) Runbook(attempt upgraders.Attempt) engine.Runbook {
	book := s.table.Runbook(attempt)
	book.SkipReasons = []string{"Suspended"}
	return book
}

func TestRun_rejects_invalid_upgraders(t *testing.T) {
	t.Parallel()
	access := cluster(t)
	options := manager.Options{Namespace: "upgrades", MetricsBind: "0", HealthBind: "0", LogLevel: "info", LogFormat: "json"}
	twice := table{step("Ready"), step("Ready"), commits("Commence")}
	for name, tc := range map[string]struct {
		upgraders map[string]upgraders.ClusterUpgrader
		want      []string
	}{
		"none":                  {nil, []string{"there are none, so nothing could be upgraded: register at least one"}},
		"one has no name":       {map[string]upgraders.ClusterUpgrader{"": table{commits("Commence")}}, []string{`upgrader "": its name is a spec.type, of 1 to 63 characters`}},
		"one has a long name":   {map[string]upgraders.ClusterUpgrader{strings.Repeat("a", 64): table{commits("Commence")}}, []string{"its name is a spec.type, of 1 to 63 characters"}},
		"one is nil":            {map[string]upgraders.ClusterUpgrader{"OSD": nil}, []string{`upgrader "OSD" is nil`}},
		"a step is there twice": {map[string]upgraders.ClusterUpgrader{"OSD": twice}, []string{`the runbook of upgrader "OSD": step name Ready is used twice`}},
		"there are no steps":    {map[string]upgraders.ClusterUpgrader{"OSD": table{}}, []string{`the runbook of upgrader "OSD": there are no steps`}},
		"two steps commit":      {map[string]upgraders.ClusterUpgrader{"OSD": table{commits("One"), commits("Two")}}, []string{"2 steps commit, at most one may"}},
		"a step does nothing":   {map[string]upgraders.ClusterUpgrader{"OSD": table{{Name: "Idle", Doc: "It idles."}, commits("Commence")}}, []string{"step Idle does nothing: Do is nil"}},
		"one skips upgrades":    {map[string]upgraders.ClusterUpgrader{"SHOP": skips{table{commits("Commence")}}}, []string{`the runbook of upgrader "SHOP": it has SkipReasons`}},
		"several are invalid": {
			map[string]upgraders.ClusterUpgrader{"ARO": nil, "OSD": twice, "ROSA": table{commits("Commence")}},
			[]string{"upgrader \"ARO\" is nil\nthe runbook of upgrader \"OSD\": step name Ready"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			register := func(upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) { return tc.upgraders, nil }
			err := operator.Run(t.Context(), options, access, logr.Discard(), clock.RealClock{}, register)
			if err == nil || !strings.HasPrefix(err.Error(), "invalid upgraders: ") {
				t.Fatalf("got %v, want an error about the upgraders", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q: %v", want, err)
				}
			}
		})
	}
}

func TestRun_passes_dependencies_to_upgraders(t *testing.T) {
	t.Parallel()
	options := manager.Options{Namespace: "upgrades", MetricsBind: "0", HealthBind: "0", LogLevel: "info", LogFormat: "json"}
	var got upgraders.Deps
	register := func(deps upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) {
		got = deps
		return nil, nil
	}
	if err := operator.Run(t.Context(), options, cluster(t), logr.Discard(), clock.RealClock{}, register); err == nil {
		t.Fatal("an operator without upgraders ran")
	}
	if got.Client == nil || got.Live == nil || got.Notifier == nil || got.Dependencies == nil || got.Config.UpgradeWindow.Duration == 0 {
		t.Errorf("the dependencies are %+v", got)
	}
	if got.Sources == nil || got.Sources.AlertsDisabled || got.Sources.Prometheus == nil || got.Sources.Clock == nil || got.Sources.Interval != time.Minute {
		t.Errorf("the sources are %+v, want alerts that are queried once a minute", got.Sources)
	}
	if got.Silencer == nil || got.Silencer.Alertmanager == nil {
		t.Errorf("the silencer is %+v, want one with an Alertmanager", got.Silencer)
	}
	for name, book := range map[string]engine.Runbook{
		"OSD": upgraders.OSD{Deps: got}.Runbook(upgraders.Attempt{}),
		"ARO": upgraders.ARO{Deps: got}.Runbook(upgraders.Attempt{}),
	} {
		if err := book.Validate(); err != nil {
			t.Errorf("the upgrader %s: %v", name, err)
		}
	}
}

// optionsWithConfig returns options with a configuration file that contains these lines.
func optionsWithConfig(t *testing.T, lines string) manager.Options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\n"+lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return manager.Options{Namespace: "upgrades", ConfigFile: file, MetricsBind: "0", HealthBind: "0", LogLevel: "info", LogFormat: "json"}
}

func TestRun_disables_alerts_only_without_a_URL(t *testing.T) {
	t.Parallel()
	for lines, unchecked := range map[string]bool{
		"":                         false,
		"alerts: {interval: 2s}\n": false,
		"alerts: {url: \"\"}\n":    true,
		"alerts: {url: 'https://here.monitoring.svc'}\n": false,
	} {
		var got upgraders.Deps
		register := func(deps upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) {
			got = deps
			return nil, nil
		}
		if err := operator.Run(t.Context(), optionsWithConfig(t, lines), cluster(t), logr.Discard(), clock.RealClock{}, register); err == nil {
			t.Fatal("an operator without upgraders ran")
		}
		if got.Sources == nil || got.Sources.AlertsDisabled != unchecked || (got.Sources.Prometheus == nil) != unchecked {
			t.Errorf("%q: the sources are %+v, want alerts disabled: %t", lines, got.Sources, unchecked)
		}
	}
}

func TestRun_rejects_invalid_clients_with_their_key(t *testing.T) {
	t.Parallel()
	unreachable := &rest.Config{Host: "http://127.0.0.1:1"}
	for lines, want := range map[string]string{
		"alerts: {url: thanos}\n":                                          `--config: alerts.url: the URL of Prometheus is "thanos", must begin with https://`,
		"alerts: {url: 'https://u:p@thanos'}\n":                            "--config: alerts.url: the URL of Prometheus must be a URL without user",
		"alerts: {url: 'http://thanos'}\n":                                 "--config: alerts.url: the URL of Prometheus is \"http://thanos\", must begin with https://: a token",
		"alertmanager: {url: 'https://u:p@am'}\n":                          "--config: alertmanager.url: the URL of Alertmanager must be a URL without user",
		"webhook: {url: 'http://here', tokenFile: /token}\n":               "--config: webhook.url: the URL of the receiver is \"http://here\", must begin with https://: a token",
		"externalDependencies: {urls: ['https://quay.io/', quay.io, x]}\n": "--config: externalDependencies.urls: checking the external dependencies: the URL in place 2 must be",
	} {
		err := operator.Run(t.Context(), optionsWithConfig(t, lines), unreachable, logr.Discard(), clock.RealClock{}, nil)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line that begins with %s", err, want)
		}
	}
}

func TestRun_rejects_invalid_options_and_access(t *testing.T) {
	t.Parallel()
	failIfCalled := func(upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) {
		t.Error("the upgraders were made")
		return map[string]upgraders.ClusterUpgrader{"OSD": table{commits("Commence")}}, errors.New("the upgraders were made")
	}
	right := manager.Options{Namespace: "upgrades", MetricsBind: "0", HealthBind: "0", LogLevel: "info", LogFormat: "json"}
	loud, lost, badConfig := right, right, right
	loud.LogLevel = "loud"
	lost.Kubeconfig = "/nowhere/kubeconfig"
	badConfig.ConfigFile = "/nowhere/config.yaml"
	prose, folder := right, right
	prose.Kubeconfig, folder.Kubeconfig = filepath.Join(t.TempDir(), "prose"), t.TempDir()
	if err := os.WriteFile(prose.Kubeconfig, []byte("root:x:0:0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	endless := right
	endless.ConfigFile = "/dev/zero"
	unreachable := &rest.Config{Host: "http://127.0.0.1:1"}
	for want, run := range map[string]func() error{
		"--log-level: is \"loud\"":               func() error { return operator.Main(t.Context(), loud, clock.RealClock{}, failIfCalled) },
		"--kubeconfig \"/nowhere/kubeconfig\": ": func() error { return operator.Main(t.Context(), lost, clock.RealClock{}, failIfCalled) },
		fmt.Sprintf("--kubeconfig %q: must be a kubeconfig with", prose.Kubeconfig): func() error {
			return operator.Main(t.Context(), prose, clock.RealClock{}, failIfCalled)
		},
		fmt.Sprintf("--kubeconfig %q: read %s: is a directory", folder.Kubeconfig, folder.Kubeconfig): func() error {
			return operator.Main(t.Context(), folder, clock.RealClock{}, failIfCalled)
		},
		"--log-level: is \"loud\", must": func() error {
			return operator.Run(t.Context(), loud, unreachable, logr.Discard(), clock.RealClock{}, failIfCalled)
		},
		"--config: stat /nowhere/config.yaml": func() error {
			return operator.Run(t.Context(), badConfig, unreachable, logr.Discard(), clock.RealClock{}, failIfCalled)
		},
		"--config /dev/zero: must be a regular file": func() error {
			return operator.Run(t.Context(), endless, unreachable, logr.Discard(), clock.RealClock{}, failIfCalled)
		},
		"connecting to the API server http://127.0.0.1": func() error {
			return operator.Run(t.Context(), right, unreachable, logr.Discard(), clock.RealClock{}, failIfCalled)
		},
	} {
		if err := run(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want an error that begins with %s", err, want)
		}
	}
}

func TestRun_reports_an_address_in_use_with_its_flag(t *testing.T) {
	t.Parallel()
	inUse, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inUse.Close()
	options := manager.Options{Namespace: "upgrades", MetricsBind: "0", HealthBind: inUse.Addr().String(), LogLevel: "info", LogFormat: "json"}
	err = operator.Run(t.Context(), options, cluster(t), logr.Discard(), clock.RealClock{}, nil)
	want := "--health-probe-bind-address: must be a free address of this machine, or 0 for none: listen tcp " + inUse.Addr().String()
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want an error that begins with %s", err, want)
	}
}
