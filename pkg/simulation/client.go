// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
)

// Client returns a client for an actor, such as a user, another controller, or a test. It reads
// from the API server, and no plan makes its requests fail.
func (w *World) Client(actor string) client.WithWatch { return w.client(actor, w.live(), nil) }

// live serves reads from the API server.
func (w *World) live() objects.Source {
	return objects.Source{
		Scheme: w.scheme,
		Copy:   copyInto,
		Find: func(gvk schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
			gvr, err := w.served(gvk)
			if err != nil {
				return nil, err
			}
			return w.store.get(gvr, key), nil
		},
		FindAll: func(gvk schema.GroupVersionKind, namespace string) ([]client.Object, error) {
			gvr, err := w.served(gvk)
			if err != nil {
				return nil, err
			}
			return w.store.sorted(gvr, namespace), nil
		},
	}
}

// StopServing removes a resource without objects from the API server, like deleting its
// CustomResourceDefinition. After that, reads fail.
func (w *World) StopServing(resource schema.GroupResource) { w.unserved[resource] = true }

// served returns the resource of a kind, or a client's error if the API server does not serve it.
func (w *World) served(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	if w.unserved[gvr.GroupResource()] {
		return gvr, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return gvr, nil
}

// gate determines the outcome of a request; do serves it.
type gate func(request Request, do func() error) error

func (w *World) client(actor string, reads objects.Source, gate gate) client.WithWatch {
	if gate == nil {
		gate = func(_ Request, do func() error) error { return do() }
	}
	write := func(verb, sub string, obj runtime.Object, do func() error) error {
		request, sent := w.request(verb, sub, obj), w.now
		return gate(request, func() error { return w.as(actor, sent, do) })
	}
	return interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			request := w.request("get", "", obj)
			request.Key = key
			return gate(request, func() error { return reads.Get(key, obj) })
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return gate(w.request("list", "", list), func() error { return reads.List(list, opts...) })
		},
		Create: func(ctx context.Context, api client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return write("create", "", obj, func() error { return w.create(ctx, api, obj, opts...) })
		},
		Delete: func(ctx context.Context, api client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return write("delete", "", obj, func() error { return w.delete(ctx, api, obj, opts...) })
		},
		Update: func(ctx context.Context, api client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			fallback := func() error { return api.Update(ctx, obj, opts...) }
			return write("update", "", obj, func() error { return w.update(obj, "", len(opts) > 0, fallback) })
		},
		Patch: func(ctx context.Context, api client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			fallback := func() error { return api.Patch(ctx, obj, patch, opts...) }
			fieldManager, others := patchOptions(opts)
			return write("patch", "", obj, func() error {
				return w.managing(fieldManager, func() error { return w.patch(obj, patch, "", others, fallback) })
			})
		},
		Apply: func(ctx context.Context, api client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			request, sent := applyRequest(config), w.now
			return gate(request, func() error {
				if isDryRun(opts) {
					return nil
				}
				return w.as(actor, sent, func() error {
					return w.applying(config, func() error { return api.Apply(ctx, config, opts...) })
				})
			})
		},
		SubResourceCreate: func(ctx context.Context, api client.Client, sub string, obj, body client.Object, opts ...client.SubResourceCreateOption) error {
			return write("create", sub, obj, func() error { return w.createSub(ctx, api, sub, obj, body, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, api client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			fallback := func() error { return api.SubResource(sub).Update(ctx, obj, opts...) }
			return write("update", sub, obj, func() error { return w.update(obj, sub, len(opts) > 0, fallback) })
		},
		SubResourcePatch: func(ctx context.Context, api client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			fallback := func() error { return api.SubResource(sub).Patch(ctx, obj, patch, opts...) }
			return write("patch", sub, obj, func() error { return w.patch(obj, patch, sub, len(opts) > 0, fallback) })
		},
		SubResourceApply: func(ctx context.Context, api client.Client, sub string, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			request, sent := applyRequest(config), w.now
			request.Subresource = sub
			return gate(request, func() error {
				return w.as(actor, sent, func() error { return api.SubResource(sub).Apply(ctx, config, opts...) })
			})
		},
	})
}

// patchOptions returns the field manager of a patch, and whether there are other options.
func patchOptions(opts []client.PatchOption) (fieldManager string, others bool) {
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	fieldManager, options.FieldManager = options.FieldManager, ""
	return fieldManager, !reflect.DeepEqual(options, &client.PatchOptions{})
}

// request describes a request.
func (w *World) request(verb, sub string, obj runtime.Object) Request {
	request := Request{Verb: verb, Subresource: sub}
	if gvk, err := apiutil.GVKForObject(obj, w.scheme); err == nil {
		request.Kind = gvk.Kind
	}
	if object, ok := obj.(client.Object); ok {
		request.Key = client.ObjectKeyFromObject(object)
	}
	return request
}

// isDryRun reports whether an apply request must not change anything. The fake client ignores this
// option.
func isDryRun(opts []client.ApplyOption) bool {
	options := &client.ApplyOptions{}
	options.ApplyOptions(opts)
	return len(options.DryRun) > 0
}

func applyRequest(config runtime.ApplyConfiguration) Request {
	request := Request{Verb: "apply"}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return request
	}
	request.Kind, _ = content["kind"].(string)
	if metadata, ok := content["metadata"].(map[string]any); ok {
		request.Key.Name, _ = metadata["name"].(string)
		request.Key.Namespace, _ = metadata["namespace"].(string)
	}
	return request
}

// create generates deterministic names. Unlike the fake client, it also validates in a dry run.
func (w *World) create(ctx context.Context, api client.Client, obj client.Object, opts ...client.CreateOption) error {
	if len((&client.CreateOptions{}).ApplyOptions(opts).DryRun) > 0 {
		return w.createDryRun(obj)
	}
	generated := obj.GetName() == "" && obj.GetGenerateName() != ""
	if generated {
		w.sequence++
		obj.SetName(fmt.Sprintf("%s%05d", obj.GetGenerateName(), w.sequence))
	}
	err := api.Create(ctx, obj, opts...)
	if err != nil && generated {
		obj.SetName("")
	}
	if u, ok := obj.(*unstructured.Unstructured); ok && err == nil {
		return w.answer(u)
	}
	return err
}

// answer fills an object with its stored state. The fake client does this only for typed objects.
func (w *World) answer(u *unstructured.Unstructured) error {
	stored, _, gvk, err := w.stored(u)
	if err != nil || stored == nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	if err != nil {
		return err
	}
	u.SetUnstructuredContent(content)
	u.SetGroupVersionKind(gvk)
	return nil
}

func (w *World) createDryRun(obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, w.scheme)
	if err != nil {
		return err
	}
	typed := obj.DeepCopyObject().(client.Object)
	if u, ok := typed.(*unstructured.Unstructured); ok && w.scheme.Recognizes(gvk) {
		created, err := w.scheme.New(gvk)
		if err != nil {
			return err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, created); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("decoding %s: %v", gvk.Kind, err))
		}
		typed = created.(client.Object)
	}
	if stored, gvr, _, err := w.stored(typed); err == nil && stored != nil {
		return apierrors.NewAlreadyExists(gvr.GroupResource(), obj.GetName())
	}
	return w.admit(gvk, nil, typed)
}

// delete checks the preconditions and gives running pods their grace period.
func (w *World) delete(ctx context.Context, api client.Client, obj client.Object, opts ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	gvk, err := apiutil.GVKForObject(obj, w.scheme)
	if err != nil {
		return err
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	stored := w.store.get(gvr, client.ObjectKeyFromObject(obj))
	if stored == nil {
		return apierrors.NewNotFound(gvr.GroupResource(), obj.GetName())
	}
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != stored.GetUID() {
		return apierrors.NewConflict(gvr.GroupResource(), obj.GetName(), fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", *p.UID, stored.GetUID()))
	}
	if p := options.Preconditions; p != nil && p.ResourceVersion != nil && *p.ResourceVersion != stored.GetResourceVersion() {
		return apierrors.NewConflict(gvr.GroupResource(), obj.GetName(), fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s)", *p.ResourceVersion, stored.GetResourceVersion()))
	}
	w.propagate(stored, options.PropagationPolicy)
	pod, ok := stored.(*corev1.Pod)
	if !ok {
		return api.Delete(ctx, obj, opts...)
	}
	return w.deletePod(pod.DeepCopy(), options.GracePeriodSeconds)
}

// deletePod starts the termination of a pod. Its kubelet completes it.
func (w *World) deletePod(pod *corev1.Pod, seconds *int64) error {
	gvr := corev1.SchemeGroupVersion.WithResource("pods")
	period := int64(30)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		period = *pod.Spec.TerminationGracePeriodSeconds
	}
	if seconds != nil {
		period = *seconds
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		period = 0
	}
	if period == 0 && len(pod.Finalizers) == 0 {
		return w.store.Delete(gvr, pod.Namespace, pod.Name)
	}
	if pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds <= period {
		return nil // a grace period is never extended
	}
	pod.DeletionGracePeriodSeconds = &period
	pod.DeletionTimestamp = new(metav1.NewTime(w.now))
	return w.store.Update(gvr, pod, pod.Namespace)
}

// createSub serves the pod subresources that the fake client does not support.
func (w *World) createSub(ctx context.Context, api client.Client, sub string, obj, body client.Object, opts ...client.SubResourceCreateOption) error {
	gvr := corev1.SchemeGroupVersion.WithResource("pods")
	pod, isPod := w.store.get(gvr, client.ObjectKeyFromObject(obj)).(*corev1.Pod)
	switch {
	case sub != "eviction" && sub != "binding":
		return api.SubResource(sub).Create(ctx, obj, body, opts...)
	case !isPod:
		return apierrors.NewNotFound(gvr.GroupResource(), obj.GetName())
	}
	if binding, ok := body.(*corev1.Binding); ok {
		bound := pod.DeepCopy()
		bound.Spec.NodeName = binding.Target.Name
		return w.store.Update(gvr, bound, bound.Namespace)
	}
	eviction, ok := body.(*policyv1.Eviction)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("an eviction is expected, not %T", body))
	}
	return w.evict(pod, eviction)
}

// Request is a request of a process to the API server, or a read from its cache.
type Request struct {
	// Process is the name of the process, and Life the number of its life, starting at 1.
	Process string
	Life    int
	// Number counts the requests of the process over all its lives, starting at 1. Write counts its
	// writes and is 0 for a read.
	Number, Write int
	// Verb is get, list, create, update, patch, apply, or delete.
	Verb        string
	Kind        string
	Subresource string
	Key         client.ObjectKey
	// Cached reports whether the read is served by the cache.
	Cached bool
	// Time is the virtual time of the API server.
	Time time.Time
}

// String formats the request as in "patch UpgradeConfig/status team-a/upgrade".
func (r Request) String() string {
	return fmt.Sprintf("%s %s %s", r.Verb, r.what(), r.Key)
}

// what returns the kind and the subresource.
func (r Request) what() string {
	if r.Subresource == "" {
		return r.Kind
	}
	return r.Kind + "/" + r.Subresource
}

// IsWrite reports whether the request may change something.
func (r Request) IsWrite() bool { return !slices.Contains([]string{"get", "list"}, r.Verb) }
