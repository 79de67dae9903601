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
func (p *Play) Check(ctx context.Context) []string {
	asked, held, troubles := p.observed.snapshot()
	expect := p.Scenario.Expect
	for _, expected := range expect.UpgradeConfigs {
		troubles = append(troubles, p.checkUpgradeConfig(ctx, expected)...)
	}
	if expect.ClusterVersion != nil {
		troubles = append(troubles, p.checkVersion(ctx, *expect.ClusterVersion, asked)...)
	}
	troubles = append(troubles, p.checkNotifications(expect.Notifications)...)
	for _, statement := range expect.Finally {
		troubles = append(troubles, p.checkStatement(ctx, statement)...)
	}
	for _, statement := range expect.Sometime {
		if _, did := held[statement.key()]; !did {
			troubles = append(troubles, statement.key()+": never held")
		}
	}
	return append(troubles, p.broken(held)...)
}

// broken returns the promises that cannot be kept any more.
func (p *Play) broken(held map[string]string) []string {
	var broken []string
	for _, statement := range p.Scenario.Expect.Never {
		if of, did := held[statement.key()]; did {
			broken = append(broken, fmt.Sprintf("%s: held of %s, must never", statement.key(), of))
		}
	}
	return broken
}

// Wait waits until all is as expected and stays so for as long as the story says, and returns nothing; or what was not
// when the time was up, or when it could not be as expected any more.
func (p *Play) Wait(ctx context.Context) []string {
	limit := time.NewTimer(time.Until(p.Began.Add(time.Duration(p.Scenario.Expect.Within))))
	defer limit.Stop()
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		problems := p.Check(ctx)
		if len(problems) == 0 {
			return p.hold(ctx)
		}
		_, held, troubles := p.observed.snapshot()
		if final := append(troubles, p.broken(held)...); len(final) > 0 {
			return final
		}
		select {
		case <-ctx.Done():
			return append(problems, context.Cause(ctx).Error())
		case err := <-p.Cluster.Died():
			return append(problems, err.Error())
		case err := <-p.Operator.Died():
			return append(problems, err.Error())
		case <-limit.C:
			return append(problems, fmt.Sprintf("that was after %s", time.Duration(p.Scenario.Expect.Within)))
		case <-ticker.C:
		}
	}
}

func (p *Play) hold(ctx context.Context) []string {
	end := time.NewTimer(time.Duration(p.Scenario.Expect.Holds))
	defer end.Stop()
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return []string{context.Cause(ctx).Error()}
		case err := <-p.Cluster.Died():
			return []string{err.Error()}
		case err := <-p.Operator.Died():
			return []string{err.Error()}
		case <-end.C:
			return nil
		case <-ticker.C:
			if problems := p.Check(ctx); len(problems) > 0 {
				return append(problems, "that was not so before")
			}
		}
	}
}

func (p *Play) checkUpgradeConfig(ctx context.Context, expected ExpectedUpgradeConfig) []string {
	name := Object{Kind: "UpgradeConfig", Name: expected.Name}
	object := name.reference()
	err := p.objects.Get(ctx, client.ObjectKeyFromObject(object), object)
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

func (p *Play) checkVersion(ctx context.Context, expected ExpectedVersion, asked int) []string {
	var version configv1.ClusterVersion
	if err := p.Cluster.Client.Get(ctx, client.ObjectKey{Name: "version"}, &version); err != nil {
		return []string{fmt.Sprintf("ClusterVersion: %s", err)}
	}
	if len(version.Status.History) == 0 {
		return []string{"ClusterVersion: has no history"}
	}
	var problems []string
	if newest := version.Status.History[0]; expected.Version != "" && (newest.Version != expected.Version || string(newest.State) != expected.State) {
		problems = append(problems, fmt.Sprintf("ClusterVersion: is %s %s, want %s %s", newest.Version, newest.State, expected.Version, expected.State))
	}
	if expected.Asked != nil && asked != *expected.Asked {
		problems = append(problems, fmt.Sprintf("ClusterVersion: was asked %d times for another version, want %d", asked, *expected.Asked))
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
func (p *Play) checkNotifications(expected []string) []string {
	got := make([]string, 0, len(expected))
	for _, one := range p.Cluster.Receiver.Events() {
		if kind := strings.TrimPrefix(one.Type(), eventTypes); slices.Contains(expected, kind) {
			got = append(got, kind)
		}
	}
	if slices.Equal(got, expected) {
		return nil
	}
	return []string{fmt.Sprintf("the receiver got the notifications %v, want %v", got, expected)}
}

func (p *Play) checkStatement(ctx context.Context, statement Statement) []string {
	compiled, err := compile(statement.That)
	if err != nil {
		return []string{fmt.Sprintf("%s: %s", statement.key(), err)}
	}
	objects, err := p.watches.objects(ctx, statement.For)
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
