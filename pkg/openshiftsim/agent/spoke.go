// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	operators "github.com/managed-upgrade/managed-upgrade-operator/pkg/olm/report"
)

// jobDuration is the duration of a Job.
const jobDuration = time.Second

// applied is the state of one manifest of a work on a cluster.
type applied struct {
	meta     workv1.ManifestResourceMeta
	manifest object
	owned    bool
	readOnly bool
	err      error
}

// appliedWork is the state of a work on a cluster.
type appliedWork struct {
	generation int64
	manifests  []applied
}

// spoke is a simulated cluster with its agent.
type spoke struct {
	mu      sync.Mutex
	version *clusterVersion
	configs map[string]*upgradeConfig // by namespace and name
	jobs    map[string]time.Time      // creation times, by namespace and name
	works   map[string]*appliedWork
}

func newSpoke(version string, now time.Time) *spoke {
	return &spoke{version: newClusterVersion(version, now), configs: map[string]*upgradeConfig{}, jobs: map[string]time.Time{}, works: map[string]*appliedWork{}}
}

// advance simulates the cluster up to the given time.
func (c *spoke) advance(s *script, now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(c.configs)) {
		c.configs[name].start(c.version, now)
	}
	c.version.advance(s, now)
}

// apply applies the manifests of a work unless its current generation has already been applied.
func (c *spoke) apply(work *workv1.ManifestWork, now time.Time) {
	before := c.works[work.Name]
	if before != nil && before.generation == work.Generation {
		return
	}
	if before == nil {
		before = &appliedWork{}
	}
	after := &appliedWork{generation: work.Generation}
	for i := range work.Spec.Workload.Manifests {
		after.manifests = append(after.manifests, c.applyManifest(work, i, now))
	}
	c.works[work.Name] = after
	for i := range before.manifests {
		if old := &before.manifests[i]; after.find(&old.meta) == nil {
			c.release(old)
		}
	}
}

// find returns the applied state of an object, or nil if it was not applied.
func (w *appliedWork) find(meta *workv1.ManifestResourceMeta) *applied {
	for i := range w.manifests {
		if a := &w.manifests[i].meta; a.Group == meta.Group && a.Kind == meta.Kind && a.Namespace == meta.Namespace && a.Name == meta.Name {
			return &w.manifests[i]
		}
	}
	return nil
}

// applyManifest applies one manifest of a work.
func (c *spoke) applyManifest(work *workv1.ManifestWork, ordinal int, now time.Time) applied {
	a := applied{meta: workv1.ManifestResourceMeta{Ordinal: int32(ordinal)}}
	if a.err = json.Unmarshal(work.Spec.Workload.Manifests[ordinal].Raw, &a.manifest); a.err != nil {
		return a
	}
	a.meta = metaOf(a.manifest, ordinal)
	a.owned = owns(work.Spec.DeleteOption, &a.meta)
	spec, _ := a.manifest["spec"].(object)
	a.readOnly = strategyOf(&a.meta, work.Spec.ManifestConfigs) == workv1.UpdateStrategyTypeReadOnly
	switch a.meta.Kind {
	case "ClusterVersion":
		if !a.readOnly {
			c.version.apply(spec)
		}
	case "UpgradeConfig":
		c.applyUpgradeConfig(&a, spec, a.readOnly)
	case "Job":
		if key := a.meta.Namespace + "/" + a.meta.Name; c.jobs[key].IsZero() {
			c.jobs[key] = now
		}
	}
	return a
}

func (c *spoke) applyUpgradeConfig(a *applied, spec object, readOnly bool) {
	key := a.meta.Namespace + "/" + a.meta.Name
	existing := c.configs[key]
	switch {
	case readOnly: // even if it does not exist
	case existing == nil:
		metadata, _ := a.manifest["metadata"].(object)
		c.configs[key] = &upgradeConfig{generation: 1, spec: spec, metadata: metadata}
	case fmt.Sprint(existing.spec) != fmt.Sprint(spec):
		existing.spec = spec
		existing.generation++
	}
}

// delete deletes the objects that a work owned when it was last applied.
func (c *spoke) delete(work *workv1.ManifestWork) {
	w := c.works[work.Name]
	if w == nil {
		return
	}
	delete(c.works, work.Name)
	for i := range w.manifests {
		c.release(&w.manifests[i])
	}
}

// release removes an object that a work owned, unless another work also contains and owns it.
func (c *spoke) release(a *applied) {
	for _, other := range c.works {
		if shared := other.find(&a.meta); shared != nil && shared.owned {
			return
		}
	}
	if a.owned {
		c.remove(a)
	}
}

// remove removes an object. A deleted ClusterVersion loses its spec and history, as on a real
// cluster.
func (c *spoke) remove(a *applied) {
	switch a.meta.Kind {
	case "ClusterVersion":
		c.version.spec, c.version.history = object{}, []entry{{}}
	case "UpgradeConfig":
		delete(c.configs, a.meta.Namespace+"/"+a.meta.Name)
	case "Job":
		delete(c.jobs, a.meta.Namespace+"/"+a.meta.Name)
	}
}

// object returns the cluster's state of an applied object, or nil if it no longer exists.
func (c *spoke) object(a *applied, s *script, now time.Time) object {
	switch a.meta.Kind {
	case "ClusterVersion":
		return c.version.object(s, now)
	case "UpgradeConfig":
		if u := c.configs[a.meta.Namespace+"/"+a.meta.Name]; u != nil {
			return u.object(c.version, s)
		}
		return nil
	case "Job":
		return job(a, c.jobs[a.meta.Namespace+"/"+a.meta.Name], now)
	}
	if a.readOnly {
		return nil // the cluster has no other objects of its own
	}
	return a.manifest
}

// job returns a Job, which succeeds a short time after its creation.
func job(a *applied, created, now time.Time) object {
	running := maps.Clone(a.manifest)
	running["status"] = object{"active": int64(1)}
	if end := created.Add(jobDuration); !now.Before(end) {
		if metadata, is := running["metadata"].(object); is { // a Job that approves operators finds none
			named := maps.Clone(metadata)
			named["annotations"] = object{operators.Annotation: "0"}
			running["metadata"] = named
		}
		running["status"] = object{"succeeded": int64(1), "conditions": []any{condition("Complete", "True", "CompletionsReached", "", end)}}
	}
	return running
}

// metaOf returns the identity of a manifest.
func metaOf(manifest object, ordinal int) workv1.ManifestResourceMeta {
	meta := workv1.ManifestResourceMeta{Ordinal: int32(ordinal)}
	version, _ := manifest["apiVersion"].(string)
	meta.Kind, _ = manifest["kind"].(string)
	meta.Version = version
	if group, rest, found := strings.Cut(version, "/"); found {
		meta.Group, meta.Version = group, rest
	}
	meta.Resource = strings.ToLower(meta.Kind) + "s" // true for the kinds that a fleet delivers
	if metadata, is := manifest["metadata"].(object); is {
		meta.Name, _ = metadata["name"].(string)
		meta.Namespace, _ = metadata["namespace"].(string)
	}
	return meta
}

// owns reports whether a work owns an object: none of its rules may orphan the object.
func owns(option *workv1.DeleteOption, meta *workv1.ManifestResourceMeta) bool {
	switch {
	case option == nil:
		return true
	case option.PropagationPolicy == workv1.DeletePropagationPolicyTypeOrphan:
		return false
	case option.PropagationPolicy != workv1.DeletePropagationPolicyTypeSelectivelyOrphan || option.SelectivelyOrphan == nil:
		return true
	}
	return !slices.ContainsFunc(option.SelectivelyOrphan.OrphaningRules, func(rule workv1.OrphaningRule) bool {
		return rule.Group == meta.Group && rule.Resource == meta.Resource && rule.Name == meta.Name && rule.Namespace == meta.Namespace
	})
}

// strategyOf returns the update strategy of an object.
func strategyOf(meta *workv1.ManifestResourceMeta, configs []workv1.ManifestConfigOption) workv1.UpdateStrategyType {
	for i := range configs {
		if configs[i].UpdateStrategy != nil && delivery.Matches(meta, &configs[i].ResourceIdentifier) {
			return configs[i].UpdateStrategy.Type
		}
	}
	return workv1.UpdateStrategyTypeUpdate
}

// status returns the status that the agent reports for an applied work. It keeps the transition
// times of the previous status.
func (c *spoke) status(work *workv1.ManifestWork, s *script, now time.Time) workv1.ManifestWorkStatus {
	before := work.Status.DeepCopy()
	after := workv1.ManifestWorkStatus{Conditions: before.Conditions}
	allApplied, allAvailable := true, true
	for i := range c.works[work.Name].manifests {
		a := &c.works[work.Name].manifests[i]
		reported := workv1.ManifestCondition{ResourceMeta: a.meta}
		for _, old := range before.ResourceStatus.Manifests {
			if old.ResourceMeta.Kind == a.meta.Kind && old.ResourceMeta.Namespace == a.meta.Namespace && old.ResourceMeta.Name == a.meta.Name {
				reported.Conditions = old.Conditions
			}
		}
		found := c.object(a, s, now)
		allApplied, allAvailable = allApplied && a.err == nil, allAvailable && found != nil
		report(&reported, a, found, work, now)
		after.ResourceStatus.Manifests = append(after.ResourceStatus.Manifests, reported)
	}
	set(&after.Conditions, workv1.WorkApplied, allApplied, work.Generation, "AppliedManifestWork", now)
	set(&after.Conditions, workv1.WorkAvailable, allAvailable, work.Generation, "Resources", now)
	return after
}

// report completes the agent's report about a manifest. If found is nil, the object no longer
// exists.
func report(reported *workv1.ManifestCondition, a *applied, found object, work *workv1.ManifestWork, now time.Time) {
	set(&reported.Conditions, workv1.ManifestApplied, a.err == nil, work.Generation, "AppliedManifest", now)
	if a.err != nil {
		for i := range reported.Conditions {
			if reported.Conditions[i].Type == workv1.ManifestApplied {
				reported.Conditions[i].Message = "Failed to apply manifest: " + a.err.Error()
			}
		}
	}
	set(&reported.Conditions, workv1.ManifestAvailable, found != nil, 0, "Resource", now) // without a generation, like the agent
	if found == nil {
		return
	}
	var about metav1.Condition
	reported.StatusFeedbacks.Values, about = values(found, a.meta.Kind, configOf(&a.meta, work.Spec.ManifestConfigs))
	setCondition(&reported.Conditions, about, now)
}
