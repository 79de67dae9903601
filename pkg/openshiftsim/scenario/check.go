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
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
)

const checkInterval = 200 * time.Millisecond

// Check returns the expectations that are not met at this time.
func (r *Run) Check(ctx context.Context) []string {
	requests, held, failures := r.observations.snapshot()
	expect := r.Scenario.Expect
	for _, expected := range expect.UpgradeConfigs {
		failures = append(failures, r.checkUpgradeConfig(ctx, expected)...)
	}
	for _, expected := range expect.UpgradeJobs {
		failures = append(failures, r.checkUpgradeJob(ctx, expected)...)
	}
	if expect.ClusterVersion != nil {
		failures = append(failures, r.checkVersion(ctx, *expect.ClusterVersion, requests)...)
	}
	failures = append(failures, r.checkNotifications(expect.Notifications)...)
	failures = append(failures, r.observations.incomplete()...)
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

// violated returns the expectations that can no longer be met.
func (r *Run) violated(held map[string]string) []string {
	var violations []string
	for _, statement := range r.Scenario.Expect.Never {
		if of, did := held[statement.key()]; did {
			violations = append(violations, fmt.Sprintf("%s: held of %s, must never", statement.key(), of))
		}
	}
	return violations
}

// Wait waits until all expectations are met and stay met for the required time, and then returns
// nil. Otherwise, it returns the unmet expectations at the time limit, or as soon as one of them
// can no longer be met.
func (r *Run) Wait(ctx context.Context) []string {
	limit := r.StartTime.Add(time.Duration(r.Scenario.Expect.Within))
	for {
		problems := r.Check(ctx)
		if len(problems) == 0 {
			return r.waitStable(ctx)
		}
		_, held, failures := r.observations.snapshot()
		if final := append(failures, r.violated(held)...); len(final) > 0 {
			return final
		}
		if !r.world.Now().Before(limit) {
			problems = append(problems, r.observations.unmet()...)
			return append(problems, fmt.Sprintf("that was after %s", time.Duration(r.Scenario.Expect.Within)))
		}
		if err := r.world.Step(ctx, checkInterval); err != nil {
			return append(problems, err.Error())
		}
	}
}

func (r *Run) waitStable(ctx context.Context) []string {
	end := r.world.Now().Add(time.Duration(r.Scenario.Expect.StableFor))
	for r.world.Now().Before(end) {
		if err := r.world.Step(ctx, checkInterval); err != nil {
			return []string{err.Error()}
		}
		if problems := r.Check(ctx); len(problems) > 0 {
			return append(problems, "that was different before")
		}
	}
	return nil
}

func (r *Run) checkUpgradeConfig(ctx context.Context, expected ExpectedUpgrade) []string {
	name := Object{Kind: "UpgradeConfig", Name: expected.Name}
	object := name.reference()
	err := r.world.Objects().Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		object, err = nil, nil
	}
	return expected.compare(name.String(), object, err)
}

func (r *Run) checkUpgradeJob(ctx context.Context, expected ExpectedUpgradeJob) []string {
	name := "UpgradeJob " + expected.Name
	if expected.Config != "" {
		name = "first UpgradeJob of " + expected.Config
	}
	job, err := r.upgradeJob(ctx, expected)
	return expected.compare(name, job, err)
}

// compare compares an upgrade, nil if it does not exist, and its newest attempt with what is expected.
func (e ExpectedUpgrade) compare(name string, object *unstructured.Unstructured, err error) []string {
	switch {
	case err != nil:
		return []string{fmt.Sprintf("%s: %s", name, err)}
	case e.Gone && object == nil:
		return nil
	case e.Gone:
		return []string{name + ": is still there"}
	case object == nil:
		return []string{name + ": does not exist"}
	}
	var problems []string
	newest := Newest(object)
	if got, _, _ := unstructured.NestedString(newest, "phase"); got != e.Phase {
		problems = append(problems, fmt.Sprintf("%s: phase is %q, want %q", name, got, e.Phase))
	}
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	problems = append(problems, checkConditions(name, "condition", status, e.Conditions)...)
	return append(problems, checkConditions(name, "step", newest, e.Steps)...)
}

// upgradeJob returns the expected UpgradeJob, or nil if it does not exist. The name of a job
// consists of the name of its UpgradeConfig and the time of its slot.
func (r *Run) upgradeJob(ctx context.Context, expected ExpectedUpgradeJob) (*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(Object{Kind: "UpgradeJobList", APIVersion: MaintenanceAPIVersion}.GVK())
	if err := r.world.Objects().List(ctx, list, client.InNamespace(openshiftsim.OperatorNamespace)); err != nil {
		return nil, err
	}
	var first *unstructured.Unstructured
	for i := range list.Items {
		job := &list.Items[i]
		matches := job.GetName() == expected.Name || expected.Config != "" && strings.HasPrefix(job.GetName(), expected.Config+"-")
		if matches && (first == nil || job.GetName() < first.GetName()) {
			first = job
		}
	}
	return first, nil
}

// Newest returns the newest element in the history of an upgrade, or nil if the history is empty.
func Newest(upgrade *unstructured.Unstructured) map[string]any {
	history, _, _ := unstructured.NestedSlice(upgrade.Object, "status", "history")
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
	object := Object{Kind: "ClusterVersion", Name: "version"}.reference()
	err := r.world.Objects().Get(ctx, client.ObjectKeyFromObject(object), object)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &version)
	}
	if err != nil {
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
		problems = append(problems, fmt.Sprintf("ClusterVersion: was requested %d times to update to another version, want %d", requests, *expected.Requests))
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

// eventTypes is the common prefix of all CloudEvent types.
const eventTypes = "io.openshift.managed.upgrade."

// checkNotifications compares the received notifications of the expected types with the expected
// ones.
func (r *Run) checkNotifications(expected []string) []string {
	got := make([]string, 0, len(expected))
	received := r.world.CloudEvents()
	for i := range received {
		if kind := strings.TrimPrefix(received[i].Type(), eventTypes); slices.Contains(expected, kind) {
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
	objects, err := r.world.List(ctx, statement.For)
	if err != nil {
		return []string{fmt.Sprintf("%s: %s", statement.key(), err)}
	}
	for _, object := range objects {
		holds, err := compiled.holds(object.Object, r.world.Now())
		if err != nil {
			return []string{fmt.Sprintf("%s: %s", statement.key(), err)}
		}
		if holds {
			return nil
		}
	}
	return []string{statement.key() + ": does not hold"}
}

// cleanupTimeout limits how long AwaitCleanup waits, in the time of the world.
const cleanupTimeout = 2 * time.Minute

// AwaitCleanup waits up to two minutes until the cleanup of all failed attempts is complete, so
// that the printed status is final.
func (r *Run) AwaitCleanup(ctx context.Context) error {
	limit := r.world.Now().Add(cleanupTimeout)
	for r.world.Now().Before(limit) {
		cleaningUp, err := r.cleaningUp(ctx)
		if err != nil || !cleaningUp {
			return err
		}
		if err := r.world.Step(ctx, checkInterval); err != nil {
			return err
		}
	}
	return nil
}

// cleaningUp reports whether a failed attempt has not been cleaned up.
func (r *Run) cleaningUp(ctx context.Context) (bool, error) {
	for _, kind := range r.Scenario.upgradeKinds() {
		objects, err := r.world.List(ctx, kind)
		if err != nil {
			return false, err
		}
		for _, object := range objects {
			newest := Newest(object)
			if newest["phase"] == "Failed" && newest["completeTime"] == nil {
				return true, nil
			}
		}
	}
	return false, nil
}
