// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// logMissing logs the kinds that the API server does not serve, and what to do about it. A binary
// waits for these kinds, and its watches only log that something was not found. If the kinds cannot
// be determined, as of an API server before 1.27, nothing is logged. It makes two requests, whatever
// the number of kinds.
func logMissing(ctx context.Context, restConfig *rest.Config, log logr.Logger, scheme *runtime.Scheme, kinds []Kind) {
	restConfig = rest.CopyConfig(restConfig)
	restConfig.Timeout = connectionTimeout
	client, err := discovery.NewDiscoveryClientForConfig(restConfig)
	if err != nil {
		return
	}
	_, served, unknown, err := client.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil || served == nil {
		return
	}
	var missing []string
	for _, kind := range kinds {
		gvk, err := apiutil.GVKForObject(kind.Object, scheme)
		if err != nil || kind.Optional || unknown[gvk.GroupVersion()] != nil {
			continue
		}
		resources := served[gvk.GroupVersion()]
		if resources == nil || !slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == gvk.Kind }) {
			missing = append(missing, gvk.GroupKind().String())
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		log.Info("not ready until the API server serves all kinds: install their CustomResourceDefinitions, in a checkout by make install",
			"missing", slices.Compact(missing))
	}
}
