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

// observations collects the observations made during a run.
type observations struct {
	mu       sync.Mutex
	requests int               // number of requests for another version
	desired  string            // the last requested version and image
	held     map[string]string // the object and the time, by statement that has held
	failures []string          // errors of actions and expressions
	awaited  map[string]string // the problem, by statement that an action is waiting for
	commands map[*Rule]int     // the number of missing completions, by rule with commands
}

func newObservations() *observations {
	return &observations{held: map[string]string{}, awaited: map[string]string{}, commands: map[*Rule]int{}}
}

// setAwaited records why a statement that an action is waiting for does not hold. An empty problem
// indicates that the action no longer waits.
func (o *observations) setAwaited(key, problem string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if problem == "" {
		delete(o.awaited, key)
	} else {
		o.awaited[key] = problem
	}
}

// unmet returns a line for each statement that an action is waiting for.
func (o *observations) unmet() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(o.awaited)) {
		lines = append(lines, "a rule waits until "+o.awaited[key])
	}
	return lines
}

// expectCommands requires the given number of completions of a rule.
func (o *observations) expectCommands(rule *Rule, times int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.commands[rule] = times
}

// completed records that all actions of a rule have run.
func (o *observations) completed(rule *Rule) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.commands[rule]--
}

// incomplete returns a line for each rule with commands that is not completed often enough.
func (o *observations) incomplete() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var lines []string
	for rule, times := range o.commands {
		if times > 0 {
			lines = append(lines, fmt.Sprintf("rule %q: its commands have not been run", rule.Name))
		}
	}
	slices.Sort(lines)
	return lines
}

func (o *observations) recordError(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text := err.Error(); !slices.Contains(o.failures, text) {
		o.failures = append(o.failures, text)
	}
}

func (o *observations) snapshot() (requests int, held map[string]string, failures []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.requests, maps.Clone(o.held), slices.Clone(o.failures)
}

// checks returns the statements in the actions.
func (s *Scenario) checks() []Statement {
	var all []Statement
	for _, rule := range s.Rules {
		for _, action := range rule.Do {
			if action.Check != nil {
				all = append(all, *action.Check)
			}
			if action.Until != nil {
				all = append(all, *action.Until)
			}
		}
	}
	return all
}

func (s Statement) key() string { return s.For.String() + ": " + s.That }

// upgradeKinds returns the kinds of upgrade requests that the scenario uses.
func (s *Scenario) upgradeKinds() []Object {
	var all []Object
	if len(s.UpgradeConfigs) > 0 {
		all = append(all, Object{Kind: "UpgradeConfig"})
	}
	if len(s.Maintenance) > 0 {
		all = append(all, Object{Kind: "UpgradeConfig", APIVersion: MaintenanceAPIVersion}, Object{Kind: "UpgradeJob"})
	}
	return all
}

// observe subscribes to the objects that the expectations are about.
func (r *Run) observe() error {
	if err := r.world.Subscribe(Object{Kind: "ClusterVersion", Name: "version"}, r.observations.clusterVersion); err != nil {
		return err
	}
	for _, kind := range r.Scenario.upgradeKinds() {
		err := r.world.Subscribe(kind, func(object *unstructured.Unstructured, deleted bool) {
			if r.options.Watch != nil && !deleted {
				r.options.Watch(object)
			}
		})
		if err != nil {
			return err
		}
	}
	for _, statement := range slices.Concat(r.Scenario.Expect.Finally, r.Scenario.checks()) {
		if err := r.world.Subscribe(statement.For, func(*unstructured.Unstructured, bool) {}); err != nil {
			return err
		}
	}
	for _, statement := range slices.Concat(r.Scenario.Expect.Eventually, r.Scenario.Expect.Never) {
		compiled, err := compile(statement.That)
		if err != nil {
			return fmt.Errorf("%s: %w", statement.That, err)
		}
		err = r.world.Subscribe(statement.For, func(object *unstructured.Unstructured, deleted bool) {
			if !deleted {
				r.observations.statement(statement, compiled, object, r.world.Now())
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *observations) statement(statement Statement, compiled expression, object *unstructured.Unstructured, now time.Time) {
	holds, err := compiled.holds(object.Object, now)
	if err != nil {
		o.recordError(fmt.Errorf("%s: %w", statement.key(), err))
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, before := o.held[statement.key()]; holds && !before {
		o.held[statement.key()] = fmt.Sprintf("%s at %s", object.GetName(), now.Format("15:04:05"))
	}
}

// clusterVersion counts the requests for another version.
func (o *observations) clusterVersion(object *unstructured.Unstructured, _ bool) {
	version, _, _ := unstructured.NestedString(object.Object, "spec", "desiredUpdate", "version")
	image, _, _ := unstructured.NestedString(object.Object, "spec", "desiredUpdate", "image")
	desired := version + "@" + image
	o.mu.Lock()
	defer o.mu.Unlock()
	if desired != o.desired && desired != "@" {
		o.requests++
	}
	o.desired = desired
}
