// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RunOptions configure a run.
type RunOptions struct {
	// Log receives a line for each rule that applies. If it is nil, nothing is logged.
	Log io.Writer
	// Watch, if set, is called with each state of each UpgradeConfig (of both API groups) and
	// UpgradeJob. It must return quickly.
	Watch func(*unstructured.Unstructured)
}

// Run is a running scenario.
type Run struct {
	Scenario *Scenario
	// StartTime is when the UpgradeConfigs and the scheduled maintenance objects were created.
	StartTime time.Time

	world        World
	options      RunOptions
	observations *observations
	logMu        sync.Mutex
}

// Start prepares the world, starts the operator, and creates the UpgradeConfigs and scheduled
// maintenance objects. The caller must stop the world.
func Start(ctx context.Context, scenario *Scenario, world World, options RunOptions) (*Run, error) {
	r := &Run{Scenario: scenario, world: world, options: options, observations: newObservations()}
	if err := world.Apply(ctx, toObjects(scenario.Objects, world.Now())); err != nil {
		return nil, fmt.Errorf("applying the objects of the scenario: %w", err)
	}
	if err := r.observe(); err != nil {
		return nil, err
	}
	if err := r.prepareRules(); err != nil {
		return nil, err
	}
	if err := world.Observe(ctx); err != nil {
		return nil, err
	}
	if !scenario.Operator.Stopped {
		if err := world.RunOperator(ctx, start); err != nil {
			return nil, fmt.Errorf("starting the operator: %w", err)
		}
		if err := world.AwaitOperator(ctx); err != nil {
			return nil, fmt.Errorf("starting the operator: %w", err)
		}
	}
	return r, r.createUpgrades(ctx)
}

// toObjects returns objects with the variables replaced by times.
func toObjects(contents []map[string]any, now time.Time) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, content := range contents {
		objects = append(objects, toObject(content, now))
	}
	return objects
}

func toObject(content map[string]any, now time.Time) *unstructured.Unstructured {
	object, _ := withMoments(content, now).(map[string]any)
	return &unstructured.Unstructured{Object: object}
}

func (r *Run) createUpgrades(ctx context.Context) error {
	r.StartTime = r.world.Now()
	for _, config := range r.Scenario.UpgradeConfigs {
		object := config.object(r.StartTime)
		if err := r.world.Objects().Create(ctx, object); err != nil {
			return fmt.Errorf("creating UpgradeConfig %s: %w", config.Name, err)
		}
	}
	for _, object := range toObjects(r.Scenario.Maintenance, r.StartTime) {
		if err := r.world.Objects().Create(ctx, object); err != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	r.startRules()
	return nil
}

// object returns the UpgradeConfig as a user would write it.
func (u UpgradeConfig) object(now time.Time) *unstructured.Unstructured {
	offset, _ := parseOffset(u.UpgradeAt) // validated
	spec := map[string]any{
		"type":                 u.Type,
		"upgradeAt":            now.Add(offset).UTC().Truncate(time.Second).Format(time.RFC3339),
		"PDBForceDrainTimeout": int64(60),
		"desired":              map[string]any{"version": u.Version, "channel": u.Channel},
	}
	merge(spec, u.Spec)
	object := Object{Kind: "UpgradeConfig", Name: u.Name}.reference()
	object.Object["spec"] = spec
	return object
}

// merge merges from into into.
func merge(into, from map[string]any) {
	for key, value := range from {
		inner, is := value.(map[string]any)
		outer, was := into[key].(map[string]any)
		if is && was {
			merge(outer, inner)
		} else {
			into[key] = value
		}
	}
}

// logf writes a line with the time of the world. Errors of the log are ignored.
func (r *Run) logf(format string, args ...any) {
	if r.options.Log == nil {
		return
	}
	r.logMu.Lock()
	defer r.logMu.Unlock()
	_, _ = fmt.Fprintf(r.options.Log, r.world.Now().Format("15:04:05")+"  "+format+"\n", args...)
}
