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

// Options configure a run.
type Options struct {
	// Log receives a line for each rule that applies; nil means no log.
	Log io.Writer
	// Watch is called with each state of each UpgradeConfig; nil means no calls. It must return
	// quickly.
	Watch func(*unstructured.Unstructured)
}

// Run is a scenario that runs on a world.
type Run struct {
	Scenario *Scenario
	// StartTime is when the UpgradeConfigs were applied.
	StartTime time.Time

	world        World
	options      Options
	observations *observations
	logMu        sync.Mutex
}

// Start prepares the world, starts the operator, and applies the UpgradeConfigs. The caller stops
// the world.
func Start(ctx context.Context, scenario *Scenario, world World, options Options) (*Run, error) {
	r := &Run{Scenario: scenario, world: world, options: options, observations: newObservations()}
	if err := world.Apply(ctx, scenario.objects()); err != nil {
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
	return r, r.applyUpgradeConfigs(ctx)
}

func (s *Scenario) objects() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, content := range s.Objects {
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects
}

func (r *Run) applyUpgradeConfigs(ctx context.Context) error {
	r.StartTime = r.world.Now()
	for _, config := range r.Scenario.UpgradeConfigs {
		object := config.object(r.StartTime)
		if err := r.world.Objects().Create(ctx, object); err != nil {
			return fmt.Errorf("creating UpgradeConfig %s: %w", config.Name, err)
		}
	}
	r.startRules()
	return nil
}

// object returns the UpgradeConfig as a user would write it.
func (u UpgradeConfig) object(now time.Time) *unstructured.Unstructured {
	spec := map[string]any{
		"type":                 u.Type,
		"upgradeAt":            now.Add(time.Duration(u.UpgradeAt)).UTC().Truncate(time.Second).Format(time.RFC3339),
		"PDBForceDrainTimeout": int64(60),
		"desired":              map[string]any{"version": u.Version, "channel": u.Channel},
	}
	merge(spec, u.Spec)
	object := Object{Kind: "UpgradeConfig", Name: u.Name}.reference()
	object.Object["spec"] = spec
	return object
}

// merge puts one mapping over another.
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

// logf writes a line with the time of the world. A log that cannot be written is ignored.
func (r *Run) logf(format string, args ...any) {
	if r.options.Log == nil {
		return
	}
	r.logMu.Lock()
	defer r.logMu.Unlock()
	_, _ = fmt.Fprintf(r.options.Log, r.world.Now().Format("15:04:05")+"  "+format+"\n", args...)
}
