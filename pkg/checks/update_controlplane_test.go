// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

const (
	updating  = "status ControlPlaneUpdating/ClusterVersion/version"
	migrating = "status ControlPlaneMigrating/ClusterVersion/version"
)

func setVersion(c *cluster, name configv1.ClusterStatusConditionType, status configv1.ConditionStatus, message string) {
	conditions := slices.DeleteFunc(c.version.Status.Conditions, func(o configv1.ClusterOperatorStatusCondition) bool { return o.Type == name })
	if status != "" {
		conditions = append(conditions, configv1.ClusterOperatorStatusCondition{Type: name, Status: status, Message: message})
	}
	c.version.Status.Conditions = conditions
}

func TestControlPlane(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*cluster)
		want   []string
	}{
		"an update in progress": {func(*cluster) {}, []string{updating}},
		"nothing in progress":   {(*cluster).complete, nil},
		"an installation": {func(c *cluster) { c.version.Status.History = c.version.Status.History[:1] }, []string{
			"status ControlPlaneInstalling/ClusterVersion/version",
		}},
		"the same version with another image": {func(c *cluster) { c.version.Status.History[1].Version = newRelease }, []string{migrating}},
		"the previous update was not completed": {func(c *cluster) { c.version.Status.History[1].State = configv1.PartialUpdate }, []string{
			updating, "warning PreviousUpdateIncomplete/ClusterVersion/version",
		}},
		"the previous update was not completed, and the next one is": {func(c *cluster) {
			c.complete()
			c.version.Status.History[1].State = configv1.PartialUpdate
		}, nil},
		"ClusterVersion failing": {func(c *cluster) { setVersion(c, "Failing", "True", "m") }, []string{updating, "warning ClusterVersionFailing/ClusterVersion/version"}},
		"ClusterVersion failing without a message": {func(c *cluster) { setVersion(c, "Failing", "True", "") }, []string{
			updating, "warning ClusterVersionFailing/ClusterVersion/version",
		}},
		"ClusterVersion failing is unknown": {func(c *cluster) { setVersion(c, "Failing", "Unknown", "") }, []string{
			updating, "warning ClusterVersionFailingUnknown/ClusterVersion/version",
		}},
		"ClusterVersion failing is absent": {func(c *cluster) { setVersion(c, "Failing", "", "") }, []string{
			updating, "warning ClusterVersionFailingUnknown/ClusterVersion/version",
		}},
		"release refused": {func(c *cluster) { setVersion(c, "ReleaseAccepted", "False", "no signature") }, []string{
			updating, "error ReleaseRefused/ClusterVersion/version",
		}},
		"request invalid": {func(c *cluster) { setVersion(c, "Invalid", "True", "no such version") }, []string{
			updating, "error ReleaseRefused/ClusterVersion/version",
		}},
		"release accepted is unknown while it is retrieved": {func(c *cluster) { setVersion(c, "ReleaseAccepted", "Unknown", "") }, []string{updating}},

		"operator unavailable for 5 minutes":      {unavailable(5 * time.Minute), []string{updating}},
		"operator unavailable for more than 5":    {unavailable(5*time.Minute + time.Second), []string{updating, "warning OperatorUnavailable/ClusterOperator/dns"}},
		"operator unavailable for 20 minutes":     {unavailable(20 * time.Minute), []string{updating, "warning OperatorUnavailable/ClusterOperator/dns"}},
		"operator unavailable for more than 20":   {unavailable(20*time.Minute + time.Second), []string{updating, "error OperatorUnavailable/ClusterOperator/dns"}},
		"operator unavailable since the future":   {unavailable(-time.Hour), []string{updating, "warning OperatorUnavailable/ClusterOperator/dns"}},
		"operator whose availability is unknown":  {func(c *cluster) { c.setOperator("dns", "Available", "Unknown", time.Hour) }, []string{updating, "error OperatorUnavailable/ClusterOperator/dns"}},
		"operator degraded for 5 minutes":         {degraded(5 * time.Minute), []string{updating}},
		"operator degraded for more than 5":       {degraded(6 * time.Minute), []string{updating, "warning OperatorDegraded/ClusterOperator/dns"}},
		"operator degraded for 40 minutes":        {degraded(40 * time.Minute), []string{updating, "warning OperatorDegraded/ClusterOperator/dns"}},
		"operator degraded for more than 40":      {degraded(41 * time.Minute), []string{updating, "error OperatorDegraded/ClusterOperator/dns"}},
		"operator that does not report Available": {func(c *cluster) { c.setOperator("dns", "Available", "", 0) }, []string{updating, "warning OperatorStateUnknown/ClusterOperator/dns"}},
		"new operator without conditions": {func(c *cluster) {
			c.operators["dns"].Status.Conditions = nil
			c.operators["dns"].CreationTimestamp = ago(time.Minute)
		}, []string{updating}},
		"operator without the time of its condition": {func(c *cluster) {
			c.setOperator("dns", "Degraded", "True", 0)
			c.operators["dns"].Status.Conditions[1].LastTransitionTime = metav1.Time{}
		}, []string{updating, "warning OperatorDegraded/ClusterOperator/dns"}},
		"operator being updated": {func(c *cluster) { c.setOperator("machine-config", "Progressing", "True", time.Minute) }, []string{
			updating, "status OperatorUpdating/ClusterOperator/machine-config",
		}},
		"updated operator progressing again": {func(c *cluster) { c.setOperator("dns", "Progressing", "True", time.Minute) }, []string{updating}},
		"operator that is not of the release": {func(c *cluster) {
			unavailable(time.Hour)(c)
			c.operators["dns"].Annotations = map[string]string{"other": "true"}
			c.operators["dns"].Status.Versions[0].Version = "1.0.0"
		}, []string{updating}},
		"operator that the cluster profile excludes": {func(c *cluster) {
			unavailable(time.Hour)(c)
			c.operators["dns"].Annotations = map[string]string{"exclude.release.openshift.io/internal-openshift-hosted": "true"}
		}, []string{updating, "error OperatorUnavailable/ClusterOperator/dns"}},
		"no operator is annotated": {func(c *cluster) {
			unavailable(time.Hour)(c)
			for _, operator := range c.operators {
				operator.Annotations, operator.Status.Versions = nil, nil
			}
		}, []string{updating, "error OperatorUnavailable/ClusterOperator/dns", "info OperatorsNotAnnotated/ClusterOperators"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			tc.change(c)
			if diff := cmp.Diff(tc.want, found(t, checks.InformerControlPlane, c.facts(t))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func unavailable(since time.Duration) func(*cluster) {
	return func(c *cluster) { c.setOperator("dns", "Available", "False", since) }
}

func degraded(since time.Duration) func(*cluster) {
	return func(c *cluster) { c.setOperator("dns", "Degraded", "True", since) }
}

func TestControlPlane_names_what_causes_a_failure(t *testing.T) {
	t.Parallel()
	all := []string{"OperatorDegraded/ClusterOperator/dns", "OperatorDegraded/ClusterOperator/network"}
	for message, want := range map[string][]string{
		"Cluster operator dns is degraded":            all[:1],
		"Cluster operators dns, network are degraded": all,
		"dns-default is not ready":                    all, // does not name an operator
		"":                                            all,
	} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.addOperator("network", newRelease)
			degraded(time.Hour)(c)
			c.setOperator("network", "Degraded", "True", time.Hour)
			setVersion(c, "Failing", "True", message)
			c.addOperator("authentication", oldRelease) // is being updated, so it is not a cause
			c.setOperator("authentication", "Progressing", "True", time.Minute)
			findings := find(t, checks.InformerControlPlane, c.facts(t))
			failing := findings[slices.IndexFunc(findings, func(f checks.Finding) bool { return len(f.CausedBy) > 0 })]
			if diff := cmp.Diff(want, failing.CausedBy); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			if failing.Description == "" {
				t.Error("the finding describes nothing")
			}
		})
	}
}

func TestIsOperatorUpdated(t *testing.T) {
	t.Parallel()
	deployment := func(image string) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-config-operator", Name: "machine-config-operator"},
			Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "machine-config-operator", Image: image}}}}},
		}
	}
	migrate := func(c *cluster) {
		c.version.Status.History[1].Version = newRelease
		c.operators["machine-config"].Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: newRelease}, {Name: "operator-image", Version: "image:new"}}
	}
	cases := map[string]struct {
		change func(*cluster)
		want   []string // names of the updated operators
	}{
		"by the version":                  {func(*cluster) {}, []string{"dns"}},
		"no history":                      {func(c *cluster) { c.version.Status.History = nil }, nil},
		"another image, deployed":         {func(c *cluster) { migrate(c); c.others = append(c.others, deployment("image:new")) }, []string{"dns", "machine-config"}},
		"another image, not deployed yet": {func(c *cluster) { migrate(c); c.others = append(c.others, deployment("image:newer")) }, []string{"dns"}},
		"another image, unknown":          {migrate, []string{"dns"}},
		"another image, not reported": {func(c *cluster) {
			migrate(c)
			c.operators["machine-config"].Status.Versions = c.operators["machine-config"].Status.Versions[:1]
		}, []string{"dns"}},
		"another image, completely installed": {func(c *cluster) { migrate(c); c.complete() }, []string{"dns", "machine-config"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			tc.change(c)
			facts := c.facts(t)
			var got []string
			for _, operator := range facts.Operators {
				if facts.IsOperatorUpdated(operator) {
					got = append(got, operator.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("updated operators (-want +got):\n%s", diff)
			}
		})
	}
}

// Findings keep their identity when texts and times change.
func TestControlPlane_has_stable_uids(t *testing.T) {
	t.Parallel()
	uids := func(message string, since time.Duration) string {
		c := newCluster()
		degraded(since)(c)
		c.operators["dns"].Status.Conditions[1].Message = message
		setVersion(c, "Failing", "True", message)
		var all []string
		for _, f := range find(t, checks.InformerControlPlane, c.facts(t)) {
			all = append(all, f.UID())
		}
		return strings.Join(all, " ")
	}
	if a, b := uids("1 of 3 pods", 6*time.Minute), uids("2 of 3 pods", time.Hour); a != b {
		t.Errorf("%s became %s", a, b)
	}
}
