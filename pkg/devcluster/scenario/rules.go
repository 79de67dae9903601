// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// trigger decides when a rule applies.
type trigger struct {
	rule *Rule
	when *expression // nil: as soon as the object exists
	fire func(object *unstructured.Unstructured)
	fail func(error)

	mu        sync.Mutex
	held      map[types.UID]bool // of which objects the rule's condition was true when they were last seen
	remaining int
}

// evaluate sees a state of an object.
func (t *trigger) evaluate(object *unstructured.Unstructured, deleted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	holds := !deleted
	if holds && t.when != nil {
		var err error
		if holds, err = t.when.holds(object.Object, time.Now()); err != nil {
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

// prepareRules connects the rules about objects with what is seen of these.
func (r *Run) prepareRules(running context.Context) error {
	for i := range r.Scenario.Rules {
		rule := &r.Scenario.Rules[i]
		if rule.For == nil {
			continue
		}
		t := &trigger{rule: rule, held: map[types.UID]bool{}, remaining: rule.Times, fail: r.observations.recordError}
		if rule.When != "" {
			compiled, err := compile(rule.When)
			if err != nil {
				return fmt.Errorf("rule %q: %w", rule.Name, err)
			}
			t.when = &compiled
		}
		t.fire = func(object *unstructured.Unstructured) { r.runRule(running, rule, object, 1) }
		if err := r.watches.subscribe(*rule.For, t.evaluate); err != nil {
			return err
		}
	}
	return nil
}

// startRules begins with the rules that are about time alone.
func (r *Run) startRules(running context.Context) {
	for i := range r.Scenario.Rules {
		if rule := &r.Scenario.Rules[i]; rule.For == nil {
			r.runRule(running, rule, nil, rule.Times)
		}
	}
}

// runRule does what a rule says, so many times, in the background.
func (r *Run) runRule(running context.Context, rule *Rule, object *unstructured.Unstructured, times int) {
	r.wg.Go(func() {
		for range times {
			if !pause(running, time.Duration(rule.After)) || !r.runActions(running, rule, object) {
				return
			}
		}
	})
}

// runActions returns false if something could not be done, or the story has ended.
func (r *Run) runActions(running context.Context, rule *Rule, object *unstructured.Unstructured) bool {
	r.logf("· %s", rule.Name)
	for i, action := range rule.Do {
		err := r.runAction(running, action, object)
		if running.Err() != nil {
			return false
		}
		if err != nil {
			r.observations.recordError(fmt.Errorf("rule %q, do[%d]: %w", rule.Name, i, err))
			return false
		}
	}
	return true
}

// pause returns false if the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
