// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/manifests"
)

// Options say where a story is played.
type Options struct {
	// BinDir is the folder with the programs, the operator's among them. Empty means the bin folder of the working
	// directory's Go module.
	BinDir string
	// Dir is the cluster's state folder.
	Dir string
	// Repository is the checkout whose deploy folder is applied.
	Repository string
	// Log is written a line to for each thing that a rule does; nil means that nobody is told.
	Log io.Writer
	// Watch is called with each state of each UpgradeConfig; may be nil. It must return soon.
	Watch func(*unstructured.Unstructured)
}

// Run is a story that is being played.
type Run struct {
	Scenario *Scenario
	Cluster  *devcluster.Cluster
	Operator *devcluster.Operator
	// StartTime is when the UpgradeConfigs were applied.
	StartTime time.Time

	objects      client.Client // of any kind
	options      Options
	watches      *watches
	observations *observations
	stop         context.CancelFunc
	wg           sync.WaitGroup
	logMu        sync.Mutex
}

// Start starts a cluster and the operator, and applies the UpgradeConfigs. The context bounds the start alone; Stop ends
// everything.
func Start(ctx context.Context, scenario *Scenario, options Options) (*Run, error) {
	cluster, err := devcluster.Start(ctx, devcluster.Options{BinDir: options.BinDir, Dir: options.Dir, Spec: scenario.Cluster})
	if err != nil {
		return nil, err
	}
	r, err := StartOn(ctx, cluster, scenario, options)
	if err != nil {
		return nil, errors.Join(err, cluster.Stop())
	}
	return r, nil
}

// StartOn plays a story on a cluster that is already running and that the operator was not deployed to yet.
func StartOn(ctx context.Context, cluster *devcluster.Cluster, scenario *Scenario, options Options) (*Run, error) {
	r := &Run{Scenario: scenario, Cluster: cluster, options: options, observations: newObservations()}
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(err, r.end())
	}
	return r, nil
}

// Stop ends the operator and the cluster.
func (r *Run) Stop() error { return errors.Join(r.end(), r.Cluster.Stop()) }

// end ends everything but the cluster.
func (r *Run) end() error {
	if r.stop != nil {
		r.stop()
		r.wg.Wait()
		r.watches.wait()
	}
	if r.Operator != nil {
		return r.Operator.Stop()
	}
	return nil
}

func (r *Run) start(ctx context.Context) error {
	var err error
	if r.objects, err = manifests.Client(r.Cluster.RESTConfig()); err != nil {
		return err
	}
	if err := r.Cluster.Deploy(ctx, r.options.Repository); err != nil {
		return err
	}
	if err := r.prepareObjects(ctx); err != nil {
		return err
	}
	text, err := configFile(r.Scenario.Operator.Config, r.addresses())
	if err != nil {
		return fmt.Errorf("writing the operator's configuration: %w", err)
	}
	r.Operator, err = r.Cluster.PrepareOperator(ctx, devcluster.OperatorOptions{
		Config:   text,
		Replicas: r.Scenario.Operator.Replicas,
		Restart:  r.Scenario.Operator.Replicas > 1, // one that runs alone has no reason to end
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // the start ends, the story goes on
	r.stop = stop
	if r.watches, err = newWatches(r.Cluster.RESTConfig(), r.objects.RESTMapper(), pollFuncs(r.Cluster)); err != nil {
		return err
	}
	if err := r.observe(); err != nil {
		return err
	}
	if err := r.prepareRules(running); err != nil {
		return err
	}
	if err := r.watches.start(ctx, running); err != nil {
		return err
	}
	if !r.Scenario.Operator.Stopped {
		if err := r.startOperator(ctx); err != nil {
			return err
		}
	}
	return r.applyUpgradeConfigs(ctx, running)
}

// addresses are those of the cluster's servers, by what stands for them in the operator's configuration.
func (r *Run) addresses() map[string]string {
	known := map[string]string{receiverURL: r.Cluster.Sink.URL()}
	if running := r.Cluster.Monitoring; running != nil {
		known[prometheusURL], known[alertmanagerURL] = running.PrometheusURL(), running.AlertmanagerURL()
	}
	return known
}

func (r *Run) prepareObjects(ctx context.Context) error {
	var objects []*unstructured.Unstructured
	for _, content := range r.Scenario.Objects {
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	if err := manifests.Apply(ctx, r.objects, objects); err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			current := object.DeepCopy()
			if err := r.objects.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
				return false, err
			}
			desired, _, _ := unstructured.NestedInt64(current.Object, "spec", "replicas")
			ready, _, _ := unstructured.NestedInt64(current.Object, "status", "readyReplicas")
			return ready >= desired, nil
		})
		if err != nil {
			return fmt.Errorf("waiting until Deployment %s is ready: %w", client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// startOperator returns once all replicas are ready, or one has ended.
func (r *Run) startOperator(ctx context.Context) error {
	if err := r.Operator.Start(); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-r.Operator.Exited():
			return false, err
		default:
		}
		waiting := func(replica *devcluster.Replica) bool { return !replica.Ready(ctx) }
		return !slices.ContainsFunc(r.Operator.Replicas(), waiting), nil
	})
}

func (r *Run) applyUpgradeConfigs(ctx, running context.Context) error {
	r.StartTime = time.Now()
	for _, config := range r.Scenario.UpgradeConfigs {
		object := config.object(r.StartTime)
		if err := r.objects.Create(ctx, object); err != nil {
			return fmt.Errorf("creating UpgradeConfig %s: %w", config.Name, err)
		}
	}
	r.startRules(running)
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

// logf tells of something that happens.
func (r *Run) logf(format string, args ...any) {
	if r.options.Log == nil {
		return
	}
	r.logMu.Lock()
	defer r.logMu.Unlock()
	// Who cannot be told is not told.
	_, _ = fmt.Fprintf(r.options.Log, time.Now().Format("15:04:05")+"  "+format+"\n", args...)
}
