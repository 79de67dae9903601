// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	apiserverv1 "github.com/openshift/api/apiserver/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apiRequestPageSize is the number of APIRequestCounts in one page of a list. Each holds a day of
// requests by node, user, and verb.
const apiRequestPageSize = 50

// controllersOfEverything are the clients that watch every resource that exists. Their requests do
// not show that a workload needs an API.
var controllersOfEverything = []string{
	"system:kube-controller-manager", "system:cluster-policy-controller", "system:serviceaccount:kube-system:generic-garbage-collector",
	"system:serviceaccount:kube-system:namespace-controller", "system:serviceaccount:kube-system:resourcequota-controller",
}

// DeprecatedAPI is an API that a later release of Kubernetes removes, with its use in 24 hours.
type DeprecatedAPI struct {
	// Resource is the name of the APIRequestCount: resource.version.group.
	Resource string
	// RemovedIn is the minor release of Kubernetes that removes it, for example 1.27.
	RemovedIn string
	// Requests is the number of requests in the last 24 hours, without the requests of the controllers that watch every
	// resource.
	Requests int64
	// Users are the users that sent most requests, sorted; some may be missing.
	Users []string
}

// RemovedBy reports whether a release of OpenShift removes the API.
func (a DeprecatedAPI) RemovedBy(release string) Answer {
	var major, minor uint64
	if n, err := fmt.Sscanf(a.RemovedIn, "%d.%d", &major, &minor); err != nil || n != 2 || major != 1 {
		return Unknown
	}
	switch included, known := KubernetesMinor(release); {
	case !known:
		return Unknown
	case minor <= included:
		return Yes
	}
	return No
}

// KubernetesMinor returns the minor version of Kubernetes 1 in a release of OpenShift; false if it is
// unknown. Only OpenShift 4 has a fixed relation to Kubernetes.
func KubernetesMinor(release string) (uint64, bool) {
	v, err := semver.Parse(release)
	if err != nil || v.Major != 4 {
		return 0, false
	}
	return v.Minor + 13, true
}

// ListDeprecatedAPIs lists the APIs that are going to be removed, used or not, sorted by name. The
// reader must read from the API server: APIRequestCounts are large and not cached.
func ListDeprecatedAPIs(ctx context.Context, live client.Reader) ([]DeprecatedAPI, error) {
	var found []DeprecatedAPI
	err := EachItem(ctx, live, &apiserverv1.APIRequestCountList{}, apiRequestPageSize, func(count *apiserverv1.APIRequestCount) error {
		if api := deprecatedAPIOf(count); api.RemovedIn != "" {
			found = append(found, api)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the APIRequestCounts: %w", err)
	}
	slices.SortFunc(found, func(a, b DeprecatedAPI) int { return cmp.Compare(a.Resource, b.Resource) })
	return found, nil
}

// deprecatedAPIOf returns the facts of an APIRequestCount. A request whose user is not listed counts:
// only the busiest users of each node and hour are.
func deprecatedAPIOf(count *apiserverv1.APIRequestCount) DeprecatedAPI {
	api := DeprecatedAPI{Resource: count.Name, RemovedIn: sanitize(count.Status.RemovedInRelease), Requests: count.Status.RequestCount}
	if api.RemovedIn == "" {
		return api
	}
	for h := range count.Status.Last24h {
		for n := range count.Status.Last24h[h].ByNode {
			for _, user := range count.Status.Last24h[h].ByNode[n].ByUser {
				if slices.Contains(controllersOfEverything, user.UserName) {
					api.Requests -= user.RequestCount
				} else if user.RequestCount > 0 {
					api.Users = append(api.Users, sanitize(user.UserName))
				}
			}
		}
	}
	api.Requests = max(api.Requests, int64(len(api.Users)))
	slices.Sort(api.Users)
	api.Users = slices.Compact(api.Users)
	return api
}
