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

// apiRequestPageSize is the page size for APIRequestCounts. Each contains a day of requests by node, user,
// and verb.
const apiRequestPageSize = 50

// controllersOfEverything lists clients that watch every existing resource. Their requests do not prove that
// a workload needs an API.
var controllersOfEverything = []string{
	"system:kube-controller-manager", "system:cluster-policy-controller", "system:serviceaccount:kube-system:generic-garbage-collector",
	"system:serviceaccount:kube-system:namespace-controller", "system:serviceaccount:kube-system:resourcequota-controller",
}

// DeprecatedAPI is an API that a later Kubernetes release removes, with its usage over 24 hours.
type DeprecatedAPI struct {
	// Resource is the name of the APIRequestCount: resource.version.group.
	Resource string
	// RemovedIn is the Kubernetes minor release that removes the API, such as 1.27.
	RemovedIn string
	// Requests counts the requests of the last 24 hours, except for controllers that watch every resource.
	Requests int64
	// Users lists the users with the most requests, sorted. It may be incomplete.
	Users []string
}

// RemovedBy reports whether an OpenShift release removes the API.
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

// KubernetesMinor returns the Kubernetes 1 minor version in an OpenShift release, or false if it is unknown.
// Only OpenShift 4 has a fixed relation to Kubernetes.
func KubernetesMinor(release string) (uint64, bool) {
	v, err := semver.Parse(release)
	if err != nil || v.Major != 4 {
		return 0, false
	}
	return v.Minor + 13, true
}

// ListDeprecatedAPIs lists the APIs that will be removed, whether used or not, sorted by name. The reader
// must read from the API server, because APIRequestCounts are large and not cached.
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

// deprecatedAPIOf converts an APIRequestCount. Requests from unlisted users count too, because only the
// busiest users per node and hour are listed.
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
