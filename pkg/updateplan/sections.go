// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
)

const (
	// poolKind is the kind of the node pools.
	poolKind = "MachineConfigPool"
	// maxPools limits the pools in a status, because informers may name pools that do not exist.
	maxPools = 32
)

// Arrange builds the sections of a status. An insight belongs to the pools that it names, otherwise to the
// pools of its nodes, otherwise to the control plane. poolOf returns the pool of a node, or "" if it has
// none. Above the limits, the most severe insights are kept. The limits are as high as the API allows, because
// only a shown insight can be accepted. For each informer, an insight with the reason Truncated counts the
// insights that no section shows.
func Arrange(status *updatev1beta1.UpdatePlanStatus, all []updatev1beta1.InformerInsights, poolOf func(node string) string, now time.Time) {
	control, published := &updatev1beta1.ControlPlaneStatus{}, status.ControlPlane
	byPool := map[updatev1beta1.ResourceReference]*updatev1beta1.WorkerPoolStatus{}
	for i := range all {
		for _, of := range all[i].Insights {
			sections := sectionsOf(byPool, poolsOf(&of, poolOf))
			if len(sections) == 0 {
				sections = []*updatev1beta1.Section{&control.Section}
			}
			for _, section := range sections {
				place(section, all[i].Name, of)
			}
		}
	}
	keep(&control.Section)
	status.ControlPlane, status.WorkerPools = control, nil
	for _, pool := range byPool {
		keep(&pool.Section)
		status.WorkerPools = append(status.WorkerPools, *pool)
	}
	slices.SortFunc(status.WorkerPools, func(a, b updatev1beta1.WorkerPoolStatus) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.APIVersion, b.APIVersion))
	})
	shown := countByInformer(Insights(status))
	reported := countByInformer(Flatten(all))
	for _, name := range slices.Sorted(maps.Keys(reported)) {
		if dropped := reported[name] - shown[name]; dropped > 0 {
			made := insight.About(name, updatev1beta1.ReasonTruncated, updatev1beta1.LevelInfo, insight.NotShown(name, dropped), "", now)
			control.UpdateInformers = insight.AddOwn(control.UpdateInformers, made, published)
		}
	}
}

// countByInformer counts the insights by informer.
func countByInformer(all []Reported) map[string]int {
	counts := map[string]int{}
	for i := range all {
		counts[all[i].Informer]++
	}
	return counts
}

// sectionsOf returns the sections of the pools. It adds missing sections up to the limit.
func sectionsOf(byPool map[updatev1beta1.ResourceReference]*updatev1beta1.WorkerPoolStatus, pools []updatev1beta1.ResourceReference) []*updatev1beta1.Section {
	var sections []*updatev1beta1.Section
	for _, ref := range pools {
		if byPool[ref] == nil && len(byPool) < maxPools {
			byPool[ref] = &updatev1beta1.WorkerPoolStatus{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
		}
		if byPool[ref] != nil {
			sections = append(sections, &byPool[ref].Section)
		}
	}
	return sections
}

// place adds an insight to its informer's entry in a section.
func place(section *updatev1beta1.Section, informer string, of updatev1beta1.Insight) {
	last := len(section.UpdateInformers) - 1
	if last < 0 || section.UpdateInformers[last].Name != informer {
		section.UpdateInformers = append(section.UpdateInformers, updatev1beta1.InformerInsights{Name: informer})
		last++
	}
	section.UpdateInformers[last].Insights = append(section.UpdateInformers[last].Insights, of)
}

// poolsOf returns the pools that an insight concerns, without duplicates.
func poolsOf(of *updatev1beta1.Insight, poolOf func(node string) string) []updatev1beta1.ResourceReference {
	if of.Scope.Type != updatev1beta1.ScopeWorkerPool {
		return nil
	}
	var pools []updatev1beta1.ResourceReference
	add := func(ref updatev1beta1.ResourceReference) {
		if ref.Name != "" && !isControlPlane(ref.Name) && !slices.Contains(pools, ref) {
			pools = append(pools, ref)
		}
	}
	for _, ref := range of.Scope.WorkerPool {
		if insight.IsPool(ref) {
			add(ref)
		}
	}
	if len(pools) > 0 {
		return pools
	}
	for _, ref := range of.Scope.Resources {
		if ref.Kind == "Node" {
			add(updatev1beta1.ResourceReference{APIVersion: mcfgv1.GroupVersion.String(), Kind: poolKind, Name: poolOf(ref.Name)})
		}
	}
	return pools
}

// keep limits the insights per informer in a section to the most severe.
func keep(section *updatev1beta1.Section) {
	for i := range section.UpdateInformers {
		section.UpdateInformers[i].Insights, _ = insight.Keep(section.UpdateInformers[i].Insights, insight.MaxInsights)
	}
}

// isControlPlane reports whether a pool is the control plane pool.
func isControlPlane(pool string) bool {
	return clusterstate.Pool{Name: pool}.Role() == clusterstate.RoleControlPlane
}
