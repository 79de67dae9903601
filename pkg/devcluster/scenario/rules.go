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

	mu   sync.Mutex
	held map[types.UID]bool // of which objects the rule's condition was true when they were last seen
	left int
}

// look sees a state of an object.
func (t *trigger) look(object *unstructured.Unstructured, deleted bool) {
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
	if holds && !was && t.left > 0 {
		t.left--
		t.fire(object.DeepCopy())
	}
}

// prepareRules connects the rules about objects with what is seen of these.
func (p *Play) prepareRules(running context.Context) error {
	for i := range p.Scenario.Rules {
		rule := &p.Scenario.Rules[i]
		if rule.For == nil {
			continue
		}
		t := &trigger{rule: rule, held: map[types.UID]bool{}, left: rule.Times, fail: p.observed.trouble}
		if rule.When != "" {
			compiled, err := compile(rule.When)
			if err != nil {
				return fmt.Errorf("rule %q: %w", rule.Name, err)
			}
			t.when = &compiled
		}
		t.fire = func(object *unstructured.Unstructured) { p.act(running, rule, object, 1) }
		if err := p.watches.on(*rule.For, t.look); err != nil {
			return err
		}
	}
	return nil
}

// beginRules begins with the rules that are about time alone.
func (p *Play) beginRules(running context.Context) {
	for i := range p.Scenario.Rules {
		if rule := &p.Scenario.Rules[i]; rule.For == nil {
			p.act(running, rule, nil, rule.Times)
		}
	}
}

// act does what a rule says, so many times, in the background.
func (p *Play) act(running context.Context, rule *Rule, object *unstructured.Unstructured, times int) {
	p.actors.Go(func() {
		for range times {
			if !pause(running, time.Duration(rule.After)) || !p.doAll(running, rule, object) {
				return
			}
		}
	})
}

// doAll returns false if something could not be done, or the story has ended.
func (p *Play) doAll(running context.Context, rule *Rule, object *unstructured.Unstructured) bool {
	p.say("· %s", rule.Name)
	for i, action := range rule.Do {
		err := p.do(running, action, object)
		if running.Err() != nil {
			return false
		}
		if err != nil {
			p.observed.trouble(fmt.Errorf("rule %q, do[%d]: %w", rule.Name, i, err))
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
