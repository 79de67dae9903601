// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/celexpr"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// deployments returns a client of Deployments that counts reads.
func deployments(t *testing.T, reads *int, err error, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			*reads++
			if err != nil {
				return err
			}
			return c.Get(ctx, key, object, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			*reads++
			if err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	})
}

func deployment(name string, ready int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"tier": "web"}},
		Status:     appsv1.DeploymentStatus{ReadyReplicas: ready, Replicas: 2},
	}
}

const allReady = "object.status.readyReplicas == object.status.replicas"

// named returns a check of one Deployment.
func named(name string, edits ...func(*checks.ObjectCheck)) checks.ObjectCheck {
	check := checks.ObjectCheck{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name, Expr: allReady}
	for _, edit := range edits {
		edit(&check)
	}
	return check
}

func labeled(labels map[string]string) func(*checks.ObjectCheck) {
	return func(o *checks.ObjectCheck) { o.Name, o.Selector = "", &metav1.LabelSelector{MatchLabels: labels} }
}

func TestObjects(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "api", nil)
	for name, tc := range map[string]struct {
		check   checks.ObjectCheck
		err     error // of reads
		want    string
		unknown string // error reported by the gate
	}{
		"the condition holds":           {check: named("api")},
		"the condition does not hold":   {check: named("cart"), want: "objects whose condition is false: shop/cart (" + allReady + ")"},
		"the object does not exist":     {check: named("gone"), want: "objects that do not exist: shop/gone (" + allReady + ")"},
		"objects by labels":             {check: named("", labeled(map[string]string{"tier": "web"})), want: "objects whose condition is false: shop/cart (" + allReady + ")"},
		"objects of all namespaces":     {check: named("", labeled(nil), func(o *checks.ObjectCheck) { o.Namespace = "" }), want: "objects whose condition is false: shop/cart (" + allReady + ")"},
		"labels that no object has":     {check: named("", labeled(map[string]string{"tier": "db"})), want: "kinds of which no object is selected: shop/Deployment (" + allReady + ")"},
		"a field that the object lacks": {check: named("api", func(o *checks.ObjectCheck) { o.Expr = "object.status.phase == 'Ready'" }), unknown: "objects of kind Deployment of apps/v1: shop/api: evaluating the expression: no such key: phase"},
		"a right that is missing":       {check: named("api"), err: forbidden, unknown: "the operator lacks the right to get them: bind a ClusterRole with that right to its ServiceAccount"},
		"an invalid expression":         {check: named("api", func(o *checks.ObjectCheck) { o.Expr = "object." }), unknown: "expr: column "},
		"Secrets":                       {check: named("api", func(o *checks.ObjectCheck) { o.APIVersion, o.Kind = "v1", "Secret" }), unknown: "conditions on Secrets are not evaluated"},
		"neither a name nor a selector": {check: named(""), unknown: "either name or selector is required"},
		"a version that is none":        {check: named("api", func(o *checks.ObjectCheck) { o.APIVersion = "a/b/c" }), unknown: "apiVersion: must be a group and a version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads := 0
			live := deployments(t, &reads, tc.err, deployment("api", 2), deployment("cart", 1))
			sources := &checks.Sources{Conditions: celexpr.Evaluator{}, Clock: testingclock.NewFakePassiveClock(noon), Interval: time.Minute}
			runner := checks.Runner{Reader: live, Live: live, Sources: sources, Options: checks.GateOptions{Checks: []string{checks.NameObjects}, Objects: []checks.ObjectCheck{tc.check}}}
			report := runner.Run(t.Context(), noon)
			unknown := ""
			if report.Err != nil {
				unknown = report.Err.Error()
			}
			if report.Message() != tc.want || !strings.Contains(unknown, tc.unknown) || (unknown == "") != (tc.unknown == "") || report.Healthy() != (tc.want+tc.unknown == "") {
				t.Errorf("found %q, unknown %q, healthy %t; want %q, %q", report.Message(), unknown, report.Healthy(), tc.want, tc.unknown)
			}
			for _, f := range report.Findings {
				if f.Remedy != "Repair the object, or change the health check." {
					t.Errorf("remedy %q", f.Remedy)
				}
			}
		})
	}
}

// The objects are read once per interval, however often gates run. If there are more than 500, they are not
// judged.
func TestObjects_are_read_once_an_interval(t *testing.T) {
	t.Parallel()
	reads, clk := 0, testingclock.NewFakePassiveClock(noon)
	live := deployments(t, &reads, nil, deployment("cart", 1))
	runner := checks.Runner{
		Reader: live, Live: live, Sources: &checks.Sources{Conditions: celexpr.Evaluator{}, Clock: clk, Interval: time.Minute},
		Options: checks.GateOptions{Checks: []string{checks.NameObjects}, Objects: []checks.ObjectCheck{named("cart")}},
	}
	for range 10 * 60 / 2 {
		if report := runner.Run(t.Context(), noon); report.Healthy() || report.RetryAfter <= 0 {
			t.Fatalf("healthy, or no time of the next read: %+v", report)
		}
		clk.SetTime(clk.Now().Add(2 * time.Second))
	}
	if reads > 11 {
		t.Errorf("%d reads in ten minutes", reads)
	}
	var many []client.Object
	for i := range 501 {
		many = append(many, deployment(fmt.Sprintf("d%03d", i), 2))
	}
	live = deployments(t, &reads, nil, many...)
	runner.Live, runner.Options.Objects = live, []checks.ObjectCheck{named("", labeled(nil))}
	if report := runner.Run(t.Context(), noon); report.Err == nil || !strings.Contains(report.Err.Error(), "more than 500 objects are selected") {
		t.Errorf("501 objects: got %v", report.Err)
	}
}

// The same rule reports ahead of time without another read.
func TestObjects_ahead_of_time(t *testing.T) {
	t.Parallel()
	reads := 0
	live := deployments(t, &reads, nil, deployment("cart", 1))
	runner := checks.Runner{
		Reader: live, Live: live, Ahead: true,
		Sources: &checks.Sources{Conditions: celexpr.Evaluator{}, Clock: testingclock.NewFakePassiveClock(noon), Interval: time.Minute},
		Options: checks.GateOptions{Checks: []string{checks.NameObjects}, Objects: []checks.ObjectCheck{named("cart")}},
	}
	for range 3 {
		if report := runner.Run(t.Context(), time.Time{}); !strings.HasPrefix(report.Message(), "objects whose condition is false: shop/cart") || report.RetryAfter != 0 {
			t.Errorf("got %q, retry after %s", report.Message(), report.RetryAfter)
		}
	}
	if reads != 1 {
		t.Errorf("%d reads", reads)
	}
}

// A result older than ten seconds is renewed immediately if nothing else keeps the gate closed, and after the
// interval otherwise.
func TestGate_renews_what_alone_keeps_it_shut(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		object  string
		queries int
	}{
		"nothing else does":    {object: "api", queries: 2},
		"an object also waits": {object: "cart", queries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads, clk, p := 0, testingclock.NewFakePassiveClock(noon), &prometheus{}
			live := deployments(t, &reads, nil, deployment("api", 2), deployment("cart", 1))
			runner := checks.Runner{
				Reader: live, Live: live, Sources: &checks.Sources{Conditions: celexpr.Evaluator{}, Prometheus: p, Clock: clk, Interval: time.Minute},
				Options: checks.GateOptions{Checks: []string{checks.NameObjects, checks.NameAlerts}, Objects: []checks.ObjectCheck{named(tc.object)}},
			}
			for range 2 {
				if report := runner.Run(t.Context(), noon); report.Err != nil {
					t.Fatal(report.Err)
				}
				clk.SetTime(clk.Now().Add(10 * time.Second))
			}
			if p.queries != tc.queries {
				t.Errorf("alerts were queried %d times, want %d", p.queries, tc.queries)
			}
		})
	}
}
