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
	// Tell is written a line to for each thing that a rule does; nil means that nobody is told.
	Tell io.Writer
	// Watch is called with each state of each UpgradeConfig; may be nil. It must return soon.
	Watch func(*unstructured.Unstructured)
}

// Play is a story that is being played.
type Play struct {
	Scenario *Scenario
	Cluster  *devcluster.Cluster
	Operator *devcluster.Operator
	// Began is when the UpgradeConfigs were applied.
	Began time.Time

	objects  client.Client // of any kind
	options  Options
	watches  *watches
	observed *observed
	stop     context.CancelFunc
	actors   sync.WaitGroup
	tell     sync.Mutex
}

// Start starts a cluster and the operator, and applies the UpgradeConfigs. The context bounds the start alone; Stop ends
// everything.
func Start(ctx context.Context, scenario *Scenario, options Options) (*Play, error) {
	cluster, err := devcluster.Start(ctx, devcluster.Options{BinDir: options.BinDir, Dir: options.Dir, Spec: scenario.Cluster})
	if err != nil {
		return nil, err
	}
	p, err := On(ctx, cluster, scenario, options)
	if err != nil {
		return nil, errors.Join(err, cluster.Stop())
	}
	return p, nil
}

// On plays a story on a cluster that is already running and that the operator was not deployed to yet.
func On(ctx context.Context, cluster *devcluster.Cluster, scenario *Scenario, options Options) (*Play, error) {
	p := &Play{Scenario: scenario, Cluster: cluster, options: options, observed: newObserved()}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.end())
	}
	return p, nil
}

// Stop ends the operator and the cluster.
func (p *Play) Stop() error { return errors.Join(p.end(), p.Cluster.Stop()) }

// end ends everything but the cluster.
func (p *Play) end() error {
	if p.stop != nil {
		p.stop()
		p.actors.Wait()
		p.watches.wait()
	}
	if p.Operator != nil {
		return p.Operator.Stop()
	}
	return nil
}

func (p *Play) start(ctx context.Context) error {
	var err error
	if p.objects, err = manifests.Client(p.Cluster.RESTConfig()); err != nil {
		return err
	}
	if err := p.Cluster.Deploy(ctx, p.options.Repository); err != nil {
		return err
	}
	if err := p.prepareObjects(ctx); err != nil {
		return err
	}
	text, err := configFile(p.Scenario.Operator.Config, p.addresses())
	if err != nil {
		return fmt.Errorf("writing the operator's configuration: %w", err)
	}
	p.Operator, err = p.Cluster.PrepareOperator(ctx, devcluster.OperatorOptions{
		Config:   text,
		Replicas: p.Scenario.Operator.Replicas,
		Restart:  p.Scenario.Operator.Replicas > 1, // one that runs alone has no reason to end
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // the start ends, the story goes on
	p.stop = stop
	if p.watches, err = newWatches(p.Cluster.RESTConfig(), p.objects.RESTMapper(), listers(p.Cluster)); err != nil {
		return err
	}
	if err := p.observe(); err != nil {
		return err
	}
	if err := p.prepareRules(running); err != nil {
		return err
	}
	if err := p.watches.start(ctx, running); err != nil {
		return err
	}
	if !p.Scenario.Operator.Stopped {
		if err := p.startOperator(ctx); err != nil {
			return err
		}
	}
	return p.applyUpgradeConfigs(ctx, running)
}

// addresses are those of the cluster's servers, by what stands for them in the operator's configuration.
func (p *Play) addresses() map[string]string {
	known := map[string]string{receiverURL: p.Cluster.Receiver.URL()}
	if running := p.Cluster.Monitoring; running != nil {
		known[prometheusURL], known[alertmanagerURL] = running.PrometheusURL(), running.AlertmanagerURL()
	}
	return known
}

func (p *Play) prepareObjects(ctx context.Context) error {
	var objects []*unstructured.Unstructured
	for _, content := range p.Scenario.Objects {
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	if err := manifests.Apply(ctx, p.objects, objects); err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			current := object.DeepCopy()
			if err := p.objects.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
				return false, err
			}
			wanted, _, _ := unstructured.NestedInt64(current.Object, "spec", "replicas")
			ready, _, _ := unstructured.NestedInt64(current.Object, "status", "readyReplicas")
			return ready >= wanted, nil
		})
		if err != nil {
			return fmt.Errorf("waiting until Deployment %s is ready: %w", client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// startOperator returns once all replicas are ready, or one has ended.
func (p *Play) startOperator(ctx context.Context) error {
	if err := p.Operator.Start(); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-p.Operator.Died():
			return false, err
		default:
		}
		waiting := func(replica *devcluster.Replica) bool { return !replica.Ready(ctx) }
		return !slices.ContainsFunc(p.Operator.Replicas(), waiting), nil
	})
}

func (p *Play) applyUpgradeConfigs(ctx, running context.Context) error {
	p.Began = time.Now()
	for _, config := range p.Scenario.UpgradeConfigs {
		object := config.object(p.Began)
		if err := p.objects.Create(ctx, object); err != nil {
			return fmt.Errorf("creating UpgradeConfig %s: %w", config.Name, err)
		}
	}
	p.beginRules(running)
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

// say tells of something that happens.
func (p *Play) say(format string, args ...any) {
	if p.options.Tell == nil {
		return
	}
	p.tell.Lock()
	defer p.tell.Unlock()
	// Who cannot be told is not told.
	_, _ = fmt.Fprintf(p.options.Tell, time.Now().Format("15:04:05")+"  "+format+"\n", args...)
}
