// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package upgraders

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func clusterOperator(name string, degraded configv1.ConditionStatus) *configv1.ClusterOperator {
	o := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
		{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue}, {Type: configv1.OperatorDegraded, Status: degraded},
	}
	return o
}

func machineConfigPool(name string, paused bool) *mcfgv1.MachineConfigPool {
	p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Paused, p.Status.MachineCount, p.Status.UpdatedMachineCount = paused, 1, 1
	return p
}

func query(expressions ...string) []maintenancev1beta1.CustomQuery {
	var queries []maintenancev1beta1.CustomQuery
	for _, expression := range expressions {
		queries = append(queries, maintenancev1beta1.CustomQuery{Query: expression})
	}
	return queries
}

// Each key of the health checks of an UpgradeJob narrows or extends the checks as documented. The responses
// come from a real Prometheus with firing alerts in several namespaces.
func TestJobHealthChecks_with_a_real_Prometheus(t *testing.T) {
	t.Parallel()
	critical := func(name, namespace string) alerting.Alert {
		labels := map[string]string{"severity": "critical"}
		if namespace != "" {
			labels["namespace"] = namespace
		}
		return alerting.Alert{Name: name, Labels: labels}
	}
	running := devtest.StartMonitoring(t, alerting.Spec{Alerts: []alerting.Alert{
		critical("KubeAPIDown", "default"), critical("ShopDown", "shop"), critical("NodesLost", ""), critical("ManagedUpgradeFailed", "upgrades"),
		{Name: "ShopSlow", Labels: map[string]string{"severity": "warning", "namespace": "shop"}},
	}})
	source, err := prometheus.New(prometheus.Options{HTTPClient: httpclient.Options{URL: running.PrometheusURL(), Timeout: time.Minute}, Watchdog: "Watchdog"})
	if err != nil {
		t.Fatal(err)
	}
	healthy := []client.Object{clusterOperator("dns", configv1.ConditionFalse), machineConfigPool("worker", false)}
	noAlerts := new(false)
	for name, tc := range map[string]struct {
		objects []client.Object // of a healthy cluster by default
		health  maintenancev1beta1.HealthChecks
		want    string // empty if healthy
		notes   string
		fails   string
	}{
		"no key: the critical alerts of every namespace": {want: "critical alerts firing: NodesLost, default/KubeAPIDown, shop/ShopDown"},
		"alerts are not checked":                         {health: maintenancev1beta1.HealthChecks{CheckCriticalAlerts: noAlerts}},
		"an alert is excluded": {
			health: maintenancev1beta1.HealthChecks{ExcludeAlerts: []maintenancev1beta1.AlertExclusion{{Alertname: "KubeAPIDown"}}},
			want:   "critical alerts firing: NodesLost, shop/ShopDown",
		},
		"namespaces are excluded": {
			health: maintenancev1beta1.HealthChecks{ExcludeNamespaces: []string{"shop", "default"}}, want: "critical alerts firing: NodesLost",
		},
		"all alerts are excluded, by name and by namespace": {
			health: maintenancev1beta1.HealthChecks{ExcludeNamespaces: []string{"shop", "default"}, ExcludeAlerts: []maintenancev1beta1.AlertExclusion{{Alertname: "NodesLost"}}},
		},
		"an operator is degraded": {
			objects: []client.Object{clusterOperator("dns", configv1.ConditionTrue), clusterOperator("etcd", configv1.ConditionFalse)},
			health:  maintenancev1beta1.HealthChecks{CheckCriticalAlerts: noAlerts}, want: "cluster operators degraded: dns",
		},
		"an excluded operator is degraded": {
			objects: []client.Object{clusterOperator("dns", configv1.ConditionTrue)},
			health:  maintenancev1beta1.HealthChecks{CheckCriticalAlerts: noAlerts, ExcludeOperators: []string{"openshift-dns"}},
		},
		"an operator that does not exist is excluded": {
			objects: []client.Object{clusterOperator("dns", configv1.ConditionTrue)},
			health:  maintenancev1beta1.HealthChecks{CheckCriticalAlerts: noAlerts, ExcludeOperators: []string{"dns", "dsn"}},
			notes:   "exclusions that match no cluster operator: dsn",
		},
		"operators are not checked": {
			objects: []client.Object{clusterOperator("dns", configv1.ConditionTrue)},
			health:  maintenancev1beta1.HealthChecks{CheckCriticalAlerts: noAlerts, CheckDegradedOperators: new(false)},
		},
		"a person has paused a pool": {
			objects: []client.Object{clusterOperator("dns", configv1.ConditionFalse), machineConfigPool("night", true)},
			health:  maintenancev1beta1.HealthChecks{CheckCriticalAlerts: noAlerts}, want: "machine config pools paused: night",
		},
		"custom queries without samples": {
			health: maintenancev1beta1.HealthChecks{CheckCriticalAlerts: noAlerts, CustomQueries: query(
				`up{job=~"^argocd-.+$",namespace="syn"} != 1`, "vector(1) > 2 # with a comment", "vector(1)\n> 2",
			)},
		},
		"a custom query with a sample": {
			health: maintenancev1beta1.HealthChecks{CheckCriticalAlerts: noAlerts, CustomQueries: query("vector(0) == 0", "vector(1) > 2")},
			want:   "custom queries with samples: vector(0) == 0",
		},
		"a custom query with several samples": {
			health: maintenancev1beta1.HealthChecks{CheckCriticalAlerts: noAlerts, CustomQueries: query(`ALERTS{namespace="shop"}`)},
			want:   `custom queries with samples: ALERTS{namespace="shop"}`,
		},
		"a custom query that is no PromQL":  {health: maintenancev1beta1.HealthChecks{CustomQueries: query("up{")}, fails: "custom query up{: querying Prometheus: ", want: "critical alerts firing: NodesLost, default/KubeAPIDown, shop/ShopDown"},
		"a custom query of a number":        {health: maintenancev1beta1.HealthChecks{CheckCriticalAlerts: noAlerts, CustomQueries: query("1")}, fails: "custom query 1: querying Prometheus: "},
		"a custom query of a range":         {health: maintenancev1beta1.HealthChecks{CheckCriticalAlerts: noAlerts, CustomQueries: query("up[5m]")}, fails: "custom query up[5m]: querying Prometheus: "},
		"a custom query that takes forever": {health: maintenancev1beta1.HealthChecks{CheckCriticalAlerts: noAlerts, CustomQueries: query("sum_over_time(sum_over_time(vector(1)[20d:1s])[20d:1s])")}, fails: "no complete response in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.objects == nil {
				tc.objects = healthy
			}
			r := simulation.NewFakeClient(t, tc.objects...)
			deps := Deps{Client: r, Live: r, Config: config.Default(), Sources: &checks.Sources{Prometheus: source, Clock: clock.RealClock{}, Interval: time.Minute}}
			if tc.objects[len(tc.objects)-1].GetName() != "night" {
				if err := r.Create(t.Context(), machineConfigPool("master", false)); err != nil {
					t.Fatal(err)
				}
			}
			report := deps.jobHealthChecks(tc.health).Run(t.Context(), time.Time{})
			if diff := cmp.Diff([]string{tc.want, tc.notes}, []string{report.Message(), report.Notes()}); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if err := report.Err; (err == nil) != (tc.fails == "") || err != nil && (!strings.Contains(err.Error(), tc.fails) || len(err.Error()) > 1024) {
				t.Errorf("got %v, want %q", err, tc.fails)
			}
			if healthy := tc.want == "" && tc.fails == ""; report.Healthy() != healthy {
				t.Errorf("healthy: got %t, want %t", report.Healthy(), healthy)
			}
		})
	}
}
