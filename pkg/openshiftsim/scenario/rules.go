// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// trigger decides when a rule with objects applies.
type trigger struct {
	rule *Rule
	when *expression // if nil, the rule applies as soon as the object exists
	fire func(object *unstructured.Unstructured)
	fail func(error)
	now  func() time.Time

	mu        sync.Mutex
	held      map[types.UID]bool // the last value of the condition, by object
	remaining int
}

// evaluate is a Handler that fires when the condition becomes true.
func (t *trigger) evaluate(object *unstructured.Unstructured, deleted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	holds := !deleted
	if holds && t.when != nil {
		var err error
		if holds, err = t.when.holds(object.Object, t.now()); err != nil {
			t.fail(fmt.Errorf("rule %q: %w", t.rule.Name, err))
		}
	}
	was := t.held[object.GetUID()]
	t.held[object.GetUID()] = holds
	if holds && !was && t.remaining > 0 {
		t.remaining--
		t.fire(object.DeepCopy())
	}
}

// prepareRules subscribes the rules with objects.
func (r *Run) prepareRules() error {
	for i := range r.Scenario.Rules {
		rule := &r.Scenario.Rules[i]
		if slices.ContainsFunc(rule.Do, func(a Action) bool { return a.Command != nil }) {
			r.observations.expectCommands(rule, rule.Times)
		}
		if rule.For == nil {
			continue
		}
		t := &trigger{
			rule: rule, held: map[types.UID]bool{}, remaining: rule.Times,
			now: r.world.Now, fail: r.observations.recordError,
		}
		if rule.When != "" {
			compiled, err := compile(rule.When)
			if err != nil {
				return fmt.Errorf("rule %q: %w", rule.Name, err)
			}
			t.when = &compiled
		}
		t.fire = func(object *unstructured.Unstructured) { r.runRule(rule, object, 1) }
		if err := r.world.Subscribe(*rule.For, t.evaluate); err != nil {
			return err
		}
	}
	return nil
}

// startRules starts the rules without objects.
func (r *Run) startRules() {
	for i := range r.Scenario.Rules {
		if rule := &r.Scenario.Rules[i]; rule.For == nil {
			r.runRule(rule, nil, rule.Times)
		}
	}
}

// runRule runs the actions of a rule the given number of times in the background.
func (r *Run) runRule(rule *Rule, object *unstructured.Unstructured, times int) {
	r.world.Go(func(ctx context.Context, wait func(time.Duration) bool) {
		for range times {
			if !wait(time.Duration(rule.After)) || !r.runActions(ctx, wait, rule, object) {
				return
			}
		}
	})
}

// runActions runs the actions of a rule. It reports whether all of them succeeded before the run
// ended.
func (r *Run) runActions(ctx context.Context, wait func(time.Duration) bool, rule *Rule, object *unstructured.Unstructured) bool {
	r.logf("· %s", rule.Name)
	for i, action := range rule.Do {
		err := r.runAction(ctx, wait, action, object)
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			r.observations.recordError(fmt.Errorf("rule %q, do[%d]: %w", rule.Name, i, err))
			return false
		}
	}
	r.observations.completed(rule)
	return true
}
