// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// observed is what has been seen on the way.
type observed struct {
	mu       sync.Mutex
	asked    int               // how often the cluster was asked for another version
	desired  string            // what it was asked for last
	held     map[string]string // statements that held at some time, with the object that they held of
	troubles []string          // what went wrong with the story itself
}

func newObserved() *observed { return &observed{held: map[string]string{}} }

func (o *observed) trouble(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text := err.Error(); !slices.Contains(o.troubles, text) {
		o.troubles = append(o.troubles, text)
	}
}

func (o *observed) snapshot() (asked int, held map[string]string, troubles []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked, maps.Clone(o.held), slices.Clone(o.troubles)
}

// checks are the statements that actions check.
func (s *Scenario) checks() []Statement {
	var all []Statement
	for _, rule := range s.Rules {
		for _, action := range rule.Do {
			if action.Check != nil {
				all = append(all, *action.Check)
			}
		}
	}
	return all
}

func (s Statement) key() string { return s.For.String() + ": " + s.That }

// observe connects the expectations with what is seen of objects.
func (p *Play) observe() error {
	if err := p.watches.on(Object{Kind: "ClusterVersion", Name: "version"}, p.observed.clusterVersion); err != nil {
		return err
	}
	err := p.watches.on(Object{Kind: "UpgradeConfig"}, func(object *unstructured.Unstructured, deleted bool) {
		if p.options.Watch != nil && !deleted {
			p.options.Watch(object)
		}
	})
	if err != nil {
		return err
	}
	for _, statement := range slices.Concat(p.Scenario.Expect.Finally, p.Scenario.checks()) {
		if err := p.watches.on(statement.For, func(*unstructured.Unstructured, bool) {}); err != nil {
			return err
		}
	}
	for _, statement := range slices.Concat(p.Scenario.Expect.Sometime, p.Scenario.Expect.Never) {
		compiled, err := compile(statement.That)
		if err != nil {
			return fmt.Errorf("%s: %w", statement.That, err)
		}
		err = p.watches.on(statement.For, func(object *unstructured.Unstructured, deleted bool) {
			if !deleted {
				p.observed.statement(statement, compiled, object)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *observed) statement(statement Statement, compiled expression, object *unstructured.Unstructured) {
	holds, err := compiled.holds(object.Object, time.Now())
	if err != nil {
		o.trouble(fmt.Errorf("%s: %w", statement.key(), err))
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, before := o.held[statement.key()]; holds && !before {
		o.held[statement.key()] = fmt.Sprintf("%s at %s", object.GetName(), time.Now().Format("15:04:05"))
	}
}

// clusterVersion counts how often the cluster is asked for another version.
func (o *observed) clusterVersion(object *unstructured.Unstructured, _ bool) {
	version, _, _ := unstructured.NestedString(object.Object, "spec", "desiredUpdate", "version")
	image, _, _ := unstructured.NestedString(object.Object, "spec", "desiredUpdate", "image")
	desired := version + "@" + image
	o.mu.Lock()
	defer o.mu.Unlock()
	if desired != o.desired && desired != "@" {
		o.asked++
	}
	o.desired = desired
}
