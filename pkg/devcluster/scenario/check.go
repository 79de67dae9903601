// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const checkInterval = 200 * time.Millisecond

// Check says what is not as expected at this moment. What may happen only later counts as well; nothing means that all is
// as expected.
func (r *Run) Check(ctx context.Context) []string {
	requests, held, failures := r.observations.snapshot()
	expect := r.Scenario.Expect
	for _, expected := range expect.UpgradeConfigs {
		failures = append(failures, r.checkUpgradeConfig(ctx, expected)...)
	}
	if expect.ClusterVersion != nil {
		failures = append(failures, r.checkVersion(ctx, *expect.ClusterVersion, requests)...)
	}
	failures = append(failures, r.checkNotifications(expect.Notifications)...)
	for _, statement := range expect.Finally {
		failures = append(failures, r.checkStatement(ctx, statement)...)
	}
	for _, statement := range expect.Eventually {
		if _, did := held[statement.key()]; !did {
			failures = append(failures, statement.key()+": never held")
		}
	}
	return append(failures, r.violated(held)...)
}

// violated returns the promises that cannot be kept any more.
func (r *Run) violated(held map[string]string) []string {
	var violations []string
	for _, statement := range r.Scenario.Expect.Never {
		if of, did := held[statement.key()]; did {
			violations = append(violations, fmt.Sprintf("%s: held of %s, must never", statement.key(), of))
		}
	}
	return violations
}

// Wait waits until all is as expected and stays so for as long as the story says, and returns nothing; or what was not
// when the time was up, or when it could not be as expected any more.
func (r *Run) Wait(ctx context.Context) []string {
	limit := time.NewTimer(time.Until(r.StartTime.Add(time.Duration(r.Scenario.Expect.Within))))
	defer limit.Stop()
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		problems := r.Check(ctx)
		if len(problems) == 0 {
			return r.waitStable(ctx)
		}
		_, held, failures := r.observations.snapshot()
		if final := append(failures, r.violated(held)...); len(final) > 0 {
			return final
		}
		select {
		case <-ctx.Done():
			return append(problems, context.Cause(ctx).Error())
		case err := <-r.Cluster.Exited():
			return append(problems, err.Error())
		case err := <-r.Operator.Exited():
			return append(problems, err.Error())
		case <-limit.C:
			return append(problems, fmt.Sprintf("that was after %s", time.Duration(r.Scenario.Expect.Within)))
		case <-ticker.C:
		}
	}
}

func (r *Run) waitStable(ctx context.Context) []string {
	end := time.NewTimer(time.Duration(r.Scenario.Expect.StableFor))
	defer end.Stop()
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return []string{context.Cause(ctx).Error()}
		case err := <-r.Cluster.Exited():
			return []string{err.Error()}
		case err := <-r.Operator.Exited():
			return []string{err.Error()}
		case <-end.C:
			return nil
		case <-ticker.C:
			if problems := r.Check(ctx); len(problems) > 0 {
				return append(problems, "that was not so before")
			}
		}
	}
}

func (r *Run) checkUpgradeConfig(ctx context.Context, expected ExpectedUpgradeConfig) []string {
	name := Object{Kind: "UpgradeConfig", Name: expected.Name}
	object := name.reference()
	err := r.objects.Get(ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case expected.Gone && apierrors.IsNotFound(err):
		return nil
	case expected.Gone && err == nil:
		return []string{name.String() + ": is still there"}
	case err != nil:
		return []string{fmt.Sprintf("%s: %s", name, err)}
	}
	var problems []string
	newest := Newest(object)
	if phase, _, _ := unstructured.NestedString(newest, "phase"); phase != expected.Phase {
		problems = append(problems, fmt.Sprintf("%s: phase is %q, want %q", name, phase, expected.Phase))
	}
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	problems = append(problems, checkConditions(name.String(), "condition", status, expected.Conditions)...)
	return append(problems, checkConditions(name.String(), "step", newest, expected.Steps)...)
}

// Newest returns the newest element of an UpgradeConfig's history; nil if there is none.
func Newest(upgradeConfig *unstructured.Unstructured) map[string]any {
	history, _, _ := unstructured.NestedSlice(upgradeConfig.Object, "status", "history")
	if len(history) == 0 {
		return nil
	}
	newest, _ := history[0].(map[string]any)
	return newest
}

func checkConditions(of, what string, holder map[string]any, expected map[string]string) []string {
	var problems []string
	list, _, _ := unstructured.NestedSlice(holder, "conditions")
	for _, kind := range slices.Sorted(maps.Keys(expected)) {
		got := "absent"
		for _, item := range list {
			condition, is := item.(map[string]any)
			if !is || condition["type"] != kind {
				continue
			}
			got = fmt.Sprint(condition["status"])
			if strings.Contains(expected[kind], "/") {
				got += "/" + fmt.Sprint(condition["reason"])
			}
			if strings.Contains(expected[kind], ": ") {
				got += ": " + fmt.Sprint(condition["message"])
			}
		}
		if got != expected[kind] {
			problems = append(problems, fmt.Sprintf("%s: %s %s is %q, want %q", of, what, kind, got, expected[kind]))
		}
	}
	return problems
}

func (r *Run) checkVersion(ctx context.Context, expected ExpectedVersion, requests int) []string {
	var version configv1.ClusterVersion
	if err := r.Cluster.Client.Get(ctx, client.ObjectKey{Name: "version"}, &version); err != nil {
		return []string{fmt.Sprintf("ClusterVersion: %s", err)}
	}
	if len(version.Status.History) == 0 {
		return []string{"ClusterVersion: has no history"}
	}
	var problems []string
	if newest := version.Status.History[0]; expected.Version != "" && (newest.Version != expected.Version || string(newest.State) != expected.State) {
		problems = append(problems, fmt.Sprintf("ClusterVersion: is %s %s, want %s %s", newest.Version, newest.State, expected.Version, expected.State))
	}
	if expected.Requests != nil && requests != *expected.Requests {
		problems = append(problems, fmt.Sprintf("ClusterVersion: was asked %d times for another version, want %d", requests, *expected.Requests))
	}
	desired := "none"
	if version.Spec.DesiredUpdate != nil {
		desired = version.Spec.DesiredUpdate.Version
	}
	if expected.DesiredUpdate != "" && desired != expected.DesiredUpdate {
		problems = append(problems, fmt.Sprintf("ClusterVersion: spec.desiredUpdate is %s, want %s", desired, expected.DesiredUpdate))
	}
	return problems
}

// eventTypes is what the types of all CloudEvents begin with.
const eventTypes = "io.openshift.managed.upgrade."

// checkNotifications compares what the receiver got of some types with what it should have.
func (r *Run) checkNotifications(expected []string) []string {
	got := make([]string, 0, len(expected))
	for _, one := range r.Cluster.Sink.Events() {
		if kind := strings.TrimPrefix(one.Type(), eventTypes); slices.Contains(expected, kind) {
			got = append(got, kind)
		}
	}
	if slices.Equal(got, expected) {
		return nil
	}
	return []string{fmt.Sprintf("the receiver got the notifications %v, want %v", got, expected)}
}

func (r *Run) checkStatement(ctx context.Context, statement Statement) []string {
	compiled, err := compile(statement.That)
	if err != nil {
		return []string{fmt.Sprintf("%s: %s", statement.key(), err)}
	}
	objects, err := r.watches.objects(ctx, statement.For)
	if err != nil {
		return []string{fmt.Sprintf("%s: %s", statement.key(), err)}
	}
	for _, object := range objects {
		holds, err := compiled.holds(object.Object, time.Now())
		if err != nil {
			return []string{fmt.Sprintf("%s: %s", statement.key(), err)}
		}
		if holds {
			return nil
		}
	}
	return []string{statement.key() + ": does not hold"}
}
