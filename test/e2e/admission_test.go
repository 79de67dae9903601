// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/nodekeeper"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/capacity"
)

// as returns a client with the permissions of a ServiceAccount.
func (s *server) as(t *testing.T, namespace, account string) client.Client {
	t.Helper()
	access := rest.CopyConfig(s.RESTConfig())
	access.Impersonate.UserName = "system:serviceaccount:" + namespace + ":" + account
	access.WarningHandlerWithContext = rest.NoWarnings{}
	c, err := client.New(access, client.Options{Scheme: s.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// object returns an object of a kind that the client knows from the API server only.
func object(gvk schema.GroupVersionKind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: maps.Clone(fields)}
	if o.Object == nil {
		o.Object = map[string]any{}
	}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

var (
	clusterVersionKind = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterVersion"}
	machineSetKind     = schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineSet"}
	parametersKind     = schema.GroupVersionKind{Group: "managedupgrade.appuio.io", Version: "v1beta1", Kind: "ClusterVersion"}
	poolKind           = schema.GroupVersionKind{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfigPool"}
	upgradeConfigKind  = schema.GroupVersionKind{Group: "upgrade.managed.openshift.io", Version: "v1alpha1", Kind: "UpgradeConfig"}
)

const (
	offeredImage     = "quay.io/openshift-release-dev/ocp-release@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	conditionalImage = "quay.io/openshift-release-dev/ocp-release@sha256:2222222222222222222222222222222222222222222222222222222222222222"
	unknownImage     = "quay.io/openshift-release-dev/ocp-release@sha256:3333333333333333333333333333333333333333333333333333333333333333"
	mirroredImage    = "mirror.example.com/ocp/release@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	extraLabel       = "upgrade.managed.openshift.io/extra-node-of"
)

// restricted returns a server with everything deployed and with objects that the operator writes, and
// the client of the operator. It returns once the admission policies are in effect.
func restricted(t *testing.T) (*server, client.Client) {
	t.Helper()
	s := startServer(t)
	s.openshift(t)
	s.apply(t, kustomized(t))
	version := object(clusterVersionKind, "", "version", map[string]any{"spec": map[string]any{
		"clusterID": "3c5f2c8e-7b61-4c66-8dc0-4f1d6b2f9c11", "channel": "stable-4.20",
		"upstream": "https://former.example.com", "capabilities": map[string]any{"baselineCapabilitySet": "None"},
	}})
	forced := object(clusterVersionKind, "", "forced", map[string]any{"spec": map[string]any{
		"clusterID": "3c5f2c8e-7b61-4c66-8dc0-4f1d6b2f9c11", "desiredUpdate": map[string]any{"version": "", "image": unknownImage, "force": true},
	}})
	node := object(corev1.SchemeGroupVersion.WithKind("Node"), "", "worker-0", map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{"machineconfiguration.openshift.io/state": "Done"},
		"labels":      map[string]any{"node-role.kubernetes.io/worker": ""},
	}})
	for _, o := range []client.Object{version, forced, node, pool("day", false, nil), pool("paused", true, nil), pool("night", true, map[string]any{poolMark: "uid/1"}), machineSet("workers", nil, 3), machineSet("workers-extra-0123abcd", extraLabels(), 1), machineSet("forged", extraLabels(), 1), machineSet("copied-extra-0123abcd", nil, 1)} {
		if err := s.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	status := fmt.Sprintf(`{"status": {"desired": {"version": "4.20.5", "image": %q}, "observedGeneration": 1, "versionHash": "", "history": [],
		"availableUpdates": [{"version": "4.20.6", "image": %q}],
		"conditionalUpdates": [{"release": {"version": "4.20.7", "image": %q}, "risks": [{"name": "Slow", "url": "https://example.com", "message": "slow", "matchingRules": [{"type": "Always"}]}]}]}}`,
		unknownImage, offeredImage, conditionalImage)
	if err := s.client.Status().Patch(t.Context(), version, client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
		t.Fatal(err)
	}
	operator := s.as(t, home, home)
	probes := map[string]func(context.Context) error{
		"clusterversion": func(ctx context.Context) error {
			return patch(ctx, operator, version, `{"metadata": {"labels": {"a": "b"}}}`)
		},
		"machineconfigpools": func(ctx context.Context) error {
			return patch(ctx, operator, object(poolKind, "", "day", nil), `{"spec": {"maxUnavailable": 2}}`)
		},
		"nodes": func(ctx context.Context) error {
			return patch(ctx, operator, node, `{"spec": {"unschedulable": true}}`)
		},
		"machinesets": func(ctx context.Context) error {
			return operator.Create(ctx, machineSet("probe", nil, 1), client.DryRunAll)
		},
		"events": func(ctx context.Context) error {
			return operator.Create(ctx, eventAbout("v1", "ConfigMap", "openshift-monitoring", home), client.DryRunAll)
		},
	}
	for name, violates := range probes {
		eventually(t, time.Minute, "the admission policy for "+name+" is in effect", func(ctx context.Context) error {
			if violates(ctx) == nil {
				return errors.New("it admits a violation")
			}
			return nil
		})
	}
	s.setParameters(t, operator)
	return s, operator
}

// setParameters creates a ClusterVersion that sets parameters, and lets the operator apply them. It
// returns once the admission policy reads both. Before that, the operator is limited to two fields.
func (s *server) setParameters(t *testing.T, operator client.Client) {
	t.Helper()
	const two, all = "channel, desiredUpdate, and upstream only, unless deploy/cluster-version-parameters is applied", "what the ClusterVersion of managedupgrade.appuio.io sets"
	version := object(clusterVersionKind, "", "version", nil)
	for merge, denied := range map[string]string{
		`{"spec": {"channel": "fast-4.20"}}`:                                                                                   "",
		`{"spec": {"desiredUpdate": {"version": "4.20.6"}}}`:                                                                   "",
		`{"spec": {"upstream": "https://example.com"}}`:                                                                        "",
		`{"spec": {"capabilities": {"baselineCapabilitySet": "vCurrent"}}}`:                                                    two,
		`{"spec": {"capabilities": null}}`:                                                                                     two,
		`{"spec": {"clusterID": "6b7f0c55-52d8-4f0e-8f1c-6c9f3f1c0f43"}}`:                                                      two,
		`{"spec": {"overrides": [{"kind": "Deployment", "group": "apps", "namespace": "a", "name": "b", "unmanaged": true}]}}`: two,
	} {
		checkAdmission(t, patch(t.Context(), operator, version, merge), denied)
	}
	s.apply(t, kustomizedFrom(t, deployFolder+"/cluster-version-parameters"))
	parameters := object(parametersKind, home, "version", map[string]any{"spec": map[string]any{
		"template": map[string]any{"spec": map[string]any{
			"channel": "stable-4.20", "clusterID": "3c5f2c8e-7b61-4c66-8dc0-4f1d6b2f9c11", "upstream": "https://example.com",
		}},
		"overlays": []any{map[string]any{"from": "2030-01-31T01:00:00Z", "overlay": map[string]any{"spec": map[string]any{"overrides": []any{}}}}},
	}})
	if err := s.client.Create(t.Context(), parameters); err != nil {
		t.Fatal(err)
	}
	status := `{"status": {"current": {"spec": {"upstream": "https://former.example.com"}}}}`
	if err := s.client.Status().Patch(t.Context(), parameters, client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the admission policies read the parameters and the permission", func(ctx context.Context) error {
		if err := patch(ctx, operator, version, `{"spec": {"capabilities": null}}`); err == nil || !strings.Contains(err.Error(), "may remove") {
			return fmt.Errorf("removing capabilities: %w", err)
		}
		if err := patch(ctx, operator, version, `{"spec": {"capabilities": {"baselineCapabilitySet": "vCurrent"}}}`); err == nil || !strings.Contains(err.Error(), all) {
			return fmt.Errorf("changing capabilities: %w", err)
		}
		return patch(ctx, operator, version, `{"spec": {"upstream": null}}`)
	})
}

// poolMark is the annotation of a pool that the operator has paused.
const poolMark = "managedupgrade.appuio.io/paused-by"

func pool(name string, paused bool, annotations map[string]any) *unstructured.Unstructured {
	return object(poolKind, "", name, map[string]any{
		"metadata": map[string]any{"annotations": annotations, "labels": map[string]any{"name": name}},
		"spec":     map[string]any{"paused": paused, "maxUnavailable": int64(1), "nodeSelector": map[string]any{"matchLabels": map[string]any{"name": name}}},
	})
}

func machineSet(name string, labels map[string]any, replicas int64) *unstructured.Unstructured {
	return object(machineSetKind, capacity.Namespace, name, map[string]any{
		"metadata": map[string]any{"labels": labels},
		"spec":     map[string]any{"replicas": replicas, "selector": map[string]any{"matchLabels": map[string]any{"set": name}}, "template": map[string]any{}},
	})
}

// eventAbout returns an Event about an object. The Event of a cluster-scoped object is in namespace
// default.
func eventAbout(apiVersion, kind, namespace, source string) *corev1.Event {
	about := corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: "about"}
	event := &corev1.Event{InvolvedObject: about, Reason: "Tested", Source: corev1.EventSource{Component: source}}
	event.Namespace, event.Name = cmp.Or(namespace, metav1.NamespaceDefault), "about.1"
	return event
}

func extraLabels() map[string]any { return map[string]any{extraLabel: "0b5ed6d2"} }

// patch sends a merge patch as a dry run, so cases do not disturb one another.
func patch(ctx context.Context, c client.Client, o client.Object, merge string) error {
	return c.Patch(ctx, o.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(merge)), client.DryRunAll)
}

// checkAdmission fails unless a request was admitted, or denied by an admission policy with that
// message.
func checkAdmission(t *testing.T, err error, denied string) {
	t.Helper()
	switch {
	case denied == "" && err != nil:
		t.Errorf("got %v, want it admitted", err)
	case denied != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") || !strings.Contains(err.Error(), denied)):
		t.Errorf("got %v, want it denied by an admission policy: %s", err, denied)
	}
}

func TestAdmissionPolicies(t *testing.T) {
	t.Parallel()
	server, operator := restricted(t)
	const (
		fields   = "may change channel, desiredUpdate, and what the ClusterVersion of managedupgrade.appuio.io sets, except clusterID"
		removed  = "may remove channel, desiredUpdate, and what the ClusterVersion of managedupgrade.appuio.io has set, except clusterID"
		metadata = "may not change the metadata"
		plain    = "by version and image only"
		offered  = "offered releases only"
	)
	for name, tc := range map[string]struct {
		version string // name of the ClusterVersion; "version" by default
		patch   string
		denied  string
	}{
		"an available update":                                {patch: `{"spec": {"desiredUpdate": {"version": "4.20.6"}}}`},
		"an available update with empty fields":              {patch: `{"spec": {"desiredUpdate": {"version": "4.20.6", "image": "", "force": false, "architecture": ""}}}`},
		"an available update by its image":                   {patch: `{"spec": {"desiredUpdate": {"version": "4.20.6", "image": "` + offeredImage + `"}}}`},
		"an available update by a mirror's image":            {patch: `{"spec": {"desiredUpdate": {"version": "4.20.6", "image": "` + mirroredImage + `"}}}`},
		"a conditional update by its image":                  {patch: `{"spec": {"desiredUpdate": {"version": "4.20.7", "image": "` + conditionalImage + `"}}}`},
		"a channel":                                          {patch: `{"spec": {"channel": "fast-4.20"}}`},
		"nothing":                                            {patch: `{}`},
		"an update of another client is withdrawn":           {version: "forced", patch: `{"spec": {"desiredUpdate": null}}`},
		"a channel beside a forced update of another client": {version: "forced", patch: `{"spec": {"channel": "fast-4.20"}}`},

		"a forced update":                             {patch: `{"spec": {"desiredUpdate": {"version": "4.20.6", "force": true}}}`, denied: plain},
		"another architecture":                        {patch: `{"spec": {"desiredUpdate": {"version": "4.20.6", "architecture": "Multi"}}}`, denied: plain},
		"a version that is not offered":               {patch: `{"spec": {"desiredUpdate": {"version": "4.20.8"}}}`, denied: "no offer names version 4.20.8"},
		"an image that is not offered":                {patch: `{"spec": {"desiredUpdate": {"version": "4.20.6", "image": "` + unknownImage + `"}}}`, denied: "with image " + unknownImage},
		"the image of another version":                {patch: `{"spec": {"desiredUpdate": {"version": "4.20.6", "image": "` + conditionalImage + `"}}}`, denied: offered},
		"an image alone":                              {patch: `{"spec": {"desiredUpdate": {"image": "` + unknownImage + `"}}}`, denied: offered},
		"an update service that the template sets":    {patch: `{"spec": {"upstream": "https://example.com/graph"}}`},
		"overrides that an overlay sets":              {patch: `{"spec": {"overrides": [{"kind": "Deployment", "group": "apps", "namespace": "a", "name": "b", "unmanaged": true}]}}`},
		"an update service that was applied, removed": {patch: `{"spec": {"upstream": null}}`},
		"capabilities":                                {patch: `{"spec": {"capabilities": {"baselineCapabilitySet": "vCurrent"}}}`, denied: fields},
		"capabilities beside a channel":               {patch: `{"spec": {"channel": "fast-4.20", "capabilities": {"baselineCapabilitySet": "vCurrent"}}}`, denied: fields},
		"removed capabilities":                        {patch: `{"spec": {"capabilities": null}}`, denied: removed},
		"another cluster ID":                          {patch: `{"spec": {"clusterID": "6b7f0c55-52d8-4f0e-8f1c-6c9f3f1c0f43"}}`, denied: "clusterID"},
		"a label of the ClusterVersion":               {patch: `{"metadata": {"labels": {"a": "b"}}}`, denied: metadata},
		"an annotation of the ClusterVersion":         {patch: `{"metadata": {"annotations": {"upgrade.managed.openshift.io/hold": "no"}}}`, denied: metadata},
		"the fence of the ClusterVersion":             {patch: `{"metadata": {"annotations": {"upgrade.managed.openshift.io/fence": "42"}}}`},
		"the fence and the hold":                      {patch: `{"metadata": {"annotations": {"upgrade.managed.openshift.io/fence": "43", "upgrade.managed.openshift.io/hold": "no"}}}`, denied: metadata},
		"a finalizer of the ClusterVersion":           {patch: `{"metadata": {"finalizers": ["example.com/a"]}}`, denied: metadata},
	} {
		t.Run("ClusterVersion: "+name, func(t *testing.T) {
			t.Parallel()
			if tc.version == "" {
				tc.version = "version"
			}
			c := operator
			if tc.version != "version" { // RBAC allows the operator no other, so its groups are borrowed from an administrator
				c = server.administrator(t, home)
			}
			checkAdmission(t, patch(t.Context(), c, object(clusterVersionKind, "", tc.version, nil), tc.patch), tc.denied)
		})
	}

	const oneAnnotation = nodekeeper.AnnotationDrainFirstSeen + " only"
	for name, tc := range map[string]struct{ patch, denied string }{
		"the first sighting of a drain": {patch: `{"metadata": {"annotations": {"` + nodekeeper.AnnotationDrainFirstSeen + `": "2027-03-01T11:50:00Z"}}}`},
		"nothing":                       {patch: `{}`},
		"another annotation":            {patch: `{"metadata": {"annotations": {"a": "b"}}}`, denied: oneAnnotation},
		"a changed annotation":          {patch: `{"metadata": {"annotations": {"machineconfiguration.openshift.io/state": "Working"}}}`, denied: oneAnnotation},
		"a removed annotation":          {patch: `{"metadata": {"annotations": {"machineconfiguration.openshift.io/state": null}}}`, denied: oneAnnotation},
		"a label":                       {patch: `{"metadata": {"labels": {"node-role.kubernetes.io/master": ""}}}`, denied: oneAnnotation},
		"a removed label":               {patch: `{"metadata": {"labels": {"node-role.kubernetes.io/worker": null}}}`, denied: oneAnnotation},
		"no labels at all":              {patch: `{"metadata": {"labels": null}}`, denied: oneAnnotation},
		"a finalizer":                   {patch: `{"metadata": {"finalizers": ["example.com/a"]}}`, denied: oneAnnotation},
		"a cordon":                      {patch: `{"spec": {"unschedulable": true}}`, denied: "may not change the spec of a Node"},
		"a taint":                       {patch: `{"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}`, denied: "may not change the spec of a Node"},
	} {
		t.Run("Node: "+name, func(t *testing.T) {
			t.Parallel()
			checkAdmission(t, patch(t.Context(), operator, object(corev1.SchemeGroupVersion.WithKind("Node"), "", "worker-0", nil), tc.patch), tc.denied)
		})
	}

	const marked, unmarked = `"` + poolMark + `": "uid/1"`, `"` + poolMark + `": null`
	const onlyPausing = "only in the request that pauses the MachineConfigPool"
	const onlyMarked, onlyPaused, onlyMark = "unpause only one that has it", "may change paused only", "may change the annotation " + poolMark + " only"
	for name, tc := range map[string]struct{ pool, patch, denied string }{
		"it is paused with a mark":               {pool: "day", patch: `{"metadata": {"annotations": {` + marked + `}}, "spec": {"paused": true}}`},
		"it is unpaused without its mark":        {pool: "night", patch: `{"metadata": {"annotations": {` + unmarked + `}}, "spec": {"paused": false}}`},
		"its mark is changed":                    {pool: "night", patch: `{"metadata": {"annotations": {"` + poolMark + `": "uid/2"}}}`},
		"its mark is removed":                    {pool: "night", patch: `{"metadata": {"annotations": {` + unmarked + `}}}`},
		"it is paused without a mark":            {pool: "day", patch: `{"spec": {"paused": true}}`, denied: onlyMarked},
		"it is unpaused and keeps its mark":      {pool: "night", patch: `{"spec": {"paused": false}}`, denied: onlyMarked},
		"that of a user is unpaused":             {pool: "paused", patch: `{"spec": {"paused": false}}`, denied: onlyMarked},
		"that of a user is unpaused by its mark": {pool: "paused", patch: `{"metadata": {"annotations": {` + marked + `}}, "spec": {"paused": false}}`, denied: onlyMarked},
		"that of a user is marked":               {pool: "paused", patch: `{"metadata": {"annotations": {` + marked + `}}}`, denied: onlyPausing},
		"it is marked and not paused":            {pool: "day", patch: `{"metadata": {"annotations": {` + marked + `}}}`, denied: onlyPausing},
		"more of its nodes may be unavailable":   {pool: "day", patch: `{"spec": {"maxUnavailable": 2}}`, denied: onlyPaused},
		"it selects other nodes":                 {pool: "day", patch: `{"spec": {"nodeSelector": {"matchLabels": {"name": "night"}}}}`, denied: onlyPaused},
		"it loses a field":                       {pool: "day", patch: `{"spec": {"maxUnavailable": null}}`, denied: onlyPaused},
		"another annotation":                     {pool: "day", patch: `{"metadata": {"annotations": {"a": "b"}}}`, denied: onlyMark},
		"a label":                                {pool: "day", patch: `{"metadata": {"labels": {"name": "night"}}}`, denied: onlyMark},
	} {
		t.Run("MachineConfigPool: "+name, func(t *testing.T) {
			t.Parallel()
			checkAdmission(t, patch(t.Context(), operator, object(poolKind, "", tc.pool, nil), tc.patch), tc.denied)
		})
	}

	const hashed, labeled = `names end in "-extra-" and a hash`, "have the label " + extraLabel
	patched := func(name, merge string) func(context.Context) error {
		return func(ctx context.Context) error { return patch(ctx, operator, machineSet(name, nil, 0), merge) }
	}
	created := func(o client.Object) func(context.Context) error {
		return func(ctx context.Context) error { return operator.Create(ctx, o, client.DryRunAll) }
	}
	deleted := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			return operator.Delete(ctx, machineSet(name, nil, 0), client.DryRunAll, client.PropagationPolicy(metav1.DeletePropagationForeground))
		}
	}
	for name, tc := range map[string]struct {
		request func(context.Context) error
		denied  string
	}{
		"an extra one is created":            {request: created(machineSet("infra-extra-89abcdef", extraLabels(), 1))},
		"an extra one is changed":            {request: patched("workers-extra-0123abcd", `{"metadata": {"annotations": {"a": "b"}}}`)},
		"an extra one is deleted":            {request: deleted("workers-extra-0123abcd")},
		"one of two replicas is created":     {created(machineSet("infra-extra-89abcdef", extraLabels(), 2)), "at most one replica"},
		"an extra one is scaled":             {patched("workers-extra-0123abcd", `{"spec": {"replicas": 2}}`), "at most one replica"},
		"one of another name is created":     {created(machineSet("infra", extraLabels(), 1)), hashed},
		"one without the label is created":   {created(machineSet("infra-extra-89abcdef", nil, 1)), labeled},
		"an extra one loses its label":       {patched("workers-extra-0123abcd", `{"metadata": {"labels": null}}`), labeled},
		"one of an administrator is scaled":  {patched("workers", `{"spec": {"replicas": 0}}`), hashed},
		"one of an administrator is labeled": {patched("copied-extra-0123abcd", `{"metadata": {"labels": {"`+extraLabel+`": "a"}}}`), labeled},
		"one of an administrator is deleted": {deleted("copied-extra-0123abcd"), labeled},
		"one of another name is deleted":     {deleted("forged"), hashed},
	} {
		t.Run("MachineSet: "+name, func(t *testing.T) {
			t.Parallel()
			checkAdmission(t, tc.request(t.Context()), tc.denied)
		})
	}

	const upgrades, source = "upgrade.managed.openshift.io/v1alpha1", "managed-upgrade-operator"
	for name, tc := range map[string]struct {
		event  *corev1.Event
		denied string
	}{
		"about a pod in any namespace":             {event: eventAbout("v1", "Pod", "openshift-monitoring", source)},
		"about a node":                             {event: eventAbout("v1", "Node", "", source)},
		"about a machine config pool":              {event: eventAbout("machineconfiguration.openshift.io/v1", "MachineConfigPool", "", source)},
		"about an UpgradeConfig in any namespace":  {event: eventAbout(upgrades, "UpgradeConfig", "openshift-monitoring", source)},
		"about an UpgradeJob in any namespace":     {event: eventAbout("managedupgrade.appuio.io/v1beta1", "UpgradeJob", "openshift-monitoring", source)},
		"about an UpgradeConfig in its namespace":  {event: eventAbout(upgrades, "UpgradeConfig", home, source)},
		"of the leader election, in its namespace": {event: eventAbout("v1", "Lease", home, "pod-1")},
		"about a Secret elsewhere":                 {eventAbout("v1", "Secret", "openshift-monitoring", source), "about Nodes, Pods, MachineConfigPools, and upgrades only"},
		"about a custom kind named Pod":            {eventAbout("example.com/v1", "Pod", "openshift-monitoring", source), "about Nodes, Pods, MachineConfigPools, and upgrades only"},
		"about a ClusterVersion":                   {eventAbout("config.openshift.io/v1", "ClusterVersion", "", source), "about Nodes, Pods, MachineConfigPools, and upgrades only"},
		"about a pod, in the name of a kubelet":    {eventAbout("v1", "Pod", "openshift-monitoring", "kubelet"), "in its own name only"},
		"about a node, without a source":           {eventAbout("v1", "Node", "", ""), "in its own name only"},
	} {
		t.Run("Event: "+name, func(t *testing.T) {
			t.Parallel()
			checkAdmission(t, operator.Create(t.Context(), tc.event, client.DryRunAll), tc.denied)
		})
	}

	for name, request := range map[string]func(client.Client) error{
		"a ClusterVersion is created": func(c client.Client) error {
			return c.Create(t.Context(), object(clusterVersionKind, "", "version2", map[string]any{"spec": map[string]any{"clusterID": "3c5f2c8e-7b61-4c66-8dc0-4f1d6b2f9c11"}}), client.DryRunAll)
		},
		"a ClusterVersion is deleted": func(c client.Client) error {
			return c.Delete(t.Context(), object(clusterVersionKind, "", "version", nil), client.DryRunAll)
		},
		"a MachineConfigPool is created": func(c client.Client) error {
			return c.Create(t.Context(), pool("new", false, nil), client.DryRunAll)
		},
		"a MachineConfigPool is deleted": func(c client.Client) error {
			return c.Delete(t.Context(), object(poolKind, "", "day", nil), client.DryRunAll)
		},
		"a Node is created": func(c client.Client) error {
			return c.Create(t.Context(), object(corev1.SchemeGroupVersion.WithKind("Node"), "", "worker-1", nil), client.DryRunAll)
		},
		"a Node is deleted": func(c client.Client) error {
			return c.Delete(t.Context(), object(corev1.SchemeGroupVersion.WithKind("Node"), "", "worker-0", nil), client.DryRunAll)
		},
	} {
		t.Run(name+" although RBAC allows it", func(t *testing.T) {
			t.Parallel()
			checkAdmission(t, request(server.administrator(t, home)), "may not create or delete a")
		})
	}

	t.Run("other clients are not limited", func(t *testing.T) {
		t.Parallel()
		for _, err := range []error{
			patch(t.Context(), server.client, object(clusterVersionKind, "", "version", nil), `{"spec": {"upstream": "https://example.com/graph", "desiredUpdate": {"version": "4.20.8", "force": true}}}`),
			patch(t.Context(), server.client, object(corev1.SchemeGroupVersion.WithKind("Node"), "", "worker-0", nil), `{"spec": {"unschedulable": true}}`),
			patch(t.Context(), server.client, machineSet("workers", nil, 0), `{"spec": {"replicas": 5}}`),
		} {
			checkAdmission(t, err, "")
		}
	})
}

// administrator returns a client that RBAC allows everything, and that admission policies treat as
// the operator.
func (s *server) administrator(t *testing.T, namespace string) client.Client {
	t.Helper()
	access := rest.CopyConfig(s.RESTConfig())
	access.Impersonate.UserName = "system:serviceaccount:" + namespace + ":" + home
	access.Impersonate.Groups = []string{"system:masters"}
	access.WarningHandlerWithContext = rest.NoWarnings{}
	c, err := client.New(access, client.Options{Scheme: s.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// warnings collects the warnings that the API server sends.
type warnings struct{ texts chan string }

func (w warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.texts <- text
}

func TestAdmission_warns_outside_the_watched_namespace(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.openshift(t)
	s.apply(t, kustomized(t))
	if err := s.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}); err != nil {
		t.Fatal(err)
	}
	received := warnings{make(chan string, 16)}
	access := rest.CopyConfig(s.RESTConfig())
	access.WarningHandlerWithContext = received
	c, err := client.New(access, client.Options{Scheme: s.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	upgrade := map[string]any{"spec": map[string]any{
		"type": "OSD", "upgradeAt": "2030-01-31T01:00:00Z", "PDBForceDrainTimeout": int64(60),
		"desired": map[string]any{"version": "4.20.6", "channel": "stable-4.20"},
	}}
	window := map[string]any{"spec": map[string]any{"start": "2030-01-31T01:00:00Z", "end": "2030-02-28T01:00:00Z", "reason": "end of the year"}}
	create := func(ctx context.Context, namespace string) []string {
		for _, o := range []client.Object{
			object(upgradeConfigKind, namespace, "cluster", upgrade),
			object(parametersKind.GroupVersion().WithKind("UpgradeSuspensionWindow"), namespace, "cluster", window),
		} {
			if err := c.Create(ctx, o, client.DryRunAll); err != nil {
				t.Errorf("creating %T in %s: %v", o, namespace, err)
			}
		}
		var texts []string
		for len(received.texts) > 0 {
			texts = append(texts, <-received.texts)
		}
		return texts
	}
	eventually(t, time.Minute, "a warning is sent", func(ctx context.Context) error {
		texts := create(ctx, "elsewhere")
		for _, want := range []string{
			"does not watch namespace elsewhere: this UpgradeConfig has no effect", "does not watch namespace elsewhere: this UpgradeSuspensionWindow has no effect",
			"Create it in namespace " + home + ".",
		} {
			if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, want) }) {
				return fmt.Errorf("got %q, want %q", texts, want)
			}
		}
		return nil
	})
	if texts := create(t.Context(), home); len(texts) > 0 {
		t.Errorf("in the watched namespace: got %q, want no warning", texts)
	}
}

// The type checker of the API server knows the kinds. What it cannot check fails only at run time.
func TestAdmissionPoliciesPerKind(t *testing.T) {
	t.Parallel()
	policies := pick[admissionregistrationv1.ValidatingAdmissionPolicy](t, kustomized(t), "ValidatingAdmissionPolicy")
	bindings := pick[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, kustomized(t), "ValidatingAdmissionPolicyBinding")
	if len(policies) != 8 || len(bindings) != len(policies) {
		t.Fatalf("got %d policies and %d bindings, want eight of each", len(policies), len(bindings))
	}
	for i, policy := range policies {
		if bindings[i].Spec.PolicyName != policy.Name {
			t.Errorf("binding %s is for policy %q, want %q", bindings[i].Name, bindings[i].Spec.PolicyName, policy.Name)
		}
		warns := slices.Equal(bindings[i].Spec.ValidationActions, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn})
		if warns == (*policy.Spec.FailurePolicy == admissionregistrationv1.Fail) {
			t.Errorf("policy %s: failure policy %s with actions %v: a warning must never deny, and a limit must fail closed",
				policy.Name, *policy.Spec.FailurePolicy, bindings[i].Spec.ValidationActions)
		}
	}
}
