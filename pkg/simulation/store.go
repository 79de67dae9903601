// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// store holds the objects of the API server. It is the tracker of the fake client, so it receives
// the complete object that results from a request. It performs the API server's tasks at that
// point: defaulting and validation with the CRD, UID, timestamps, generation, and resource version.
// A write that changes nothing does not count as a change.
type store struct {
	world   *World
	scheme  *runtime.Scheme
	objects map[schema.GroupVersionResource]map[types.NamespacedName]client.Object
	journal map[schema.GroupVersionResource][]Change // changes that not all caches have consumed; the first one is at offset
	offset  map[schema.GroupVersionResource]int
	status  map[schema.GroupVersionKind]bool // kinds whose status is a subresource
	version uint64
	seeding bool // objects are added unchanged
}

// Change is a stored change of one object.
type Change struct {
	// Time is the virtual time of the change.
	Time time.Time
	// Sent is when the request was sent. A stalled request arrives later.
	Sent time.Time
	// Actor is the client that requested the change.
	Actor string
	// Old is nil for a creation and New is nil for a deletion. They must not be modified.
	Old, New client.Object
	// Kind is the kind of the object.
	Kind schema.GroupVersionKind
}

// Object returns the object after the change, or the last state of a deleted object.
func (c Change) Object() client.Object {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

func newStore(w *World, scheme *runtime.Scheme) *store {
	return &store{
		world: w, scheme: scheme,
		objects: map[schema.GroupVersionResource]map[types.NamespacedName]client.Object{},
		journal: map[schema.GroupVersionResource][]Change{},
		offset:  map[schema.GroupVersionResource]int{},
		status:  map[schema.GroupVersionKind]bool{},
	}
}

func (s *store) nextVersion() string {
	s.version++
	return strconv.FormatUint(s.version, 10)
}

// record records a change for the caches and reports it to the observers.
func (s *store) record(gvr schema.GroupVersionResource, change Change) {
	change.Time, change.Sent, change.Actor = s.world.now, s.world.sent, s.world.actor
	s.journal[gvr] = append(s.journal[gvr], change)
	s.world.observe(change)
}

// get returns the stored object or nil. The object must not be modified.
func (s *store) get(gvr schema.GroupVersionResource, key types.NamespacedName) client.Object {
	return s.objects[gvr][key]
}

// sorted returns the stored objects of a kind in a namespace, or in all namespaces if it is empty,
// ordered by name.
func (s *store) sorted(gvr schema.GroupVersionResource, namespace string) []client.Object {
	keys := slices.SortedFunc(maps.Keys(s.objects[gvr]), compareKeys)
	var objects []client.Object
	for _, key := range keys {
		if namespace == "" || key.Namespace == namespace {
			objects = append(objects, s.objects[gvr][key])
		}
	}
	return objects
}

// kinds returns the kinds that have had objects, ordered by name.
func (s *store) kinds() []schema.GroupVersionResource {
	return slices.SortedFunc(maps.Keys(s.objects), func(a, b schema.GroupVersionResource) int {
		return cmp.Compare(a.String(), b.String())
	})
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Add stores an object with its status.
func (s *store) Add(obj runtime.Object) error {
	object, ok := obj.(client.Object)
	if !ok {
		return fmt.Errorf("adding %T: it is no single object", obj)
	}
	gvk, err := apiutil.GVKForObject(object, s.scheme)
	if err != nil {
		return err
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	s.seeding = true
	defer func() { s.seeding = false }()
	return s.Create(gvr, object, object.GetNamespace())
}

// Create stores a new object.
func (s *store) Create(gvr schema.GroupVersionResource, obj runtime.Object, namespace string, _ ...metav1.CreateOptions) error {
	object, gvk, err := s.object(obj)
	if err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: namespace, Name: object.GetName()}
	if s.get(gvr, key) != nil {
		return apierrors.NewAlreadyExists(gvr.GroupResource(), key.Name)
	}
	if s.status[gvk] && !s.seeding {
		if err := clearStatus(object); err != nil {
			return err
		}
	}
	if object.GetUID() == "" || !s.seeding {
		object.SetUID(s.world.newUID())
	}
	if created := object.GetCreationTimestamp(); created.IsZero() || !s.seeding {
		object.SetCreationTimestamp(metav1.NewTime(s.world.now.Truncate(time.Second)))
	}
	if !s.seeding {
		object.SetGeneration(max(1, object.GetGeneration()))
	}
	if err := s.world.admit(gvk, nil, object); err != nil {
		return err
	}
	if !s.seeding && len(object.GetManagedFields()) == 0 {
		if object, err = s.own(gvk, nil, object); err != nil {
			return err
		}
	}
	return s.put(gvr, gvk, nil, object)
}

// Update replaces an object. The request's field manager becomes the owner of changed fields.
func (s *store) Update(gvr schema.GroupVersionResource, obj runtime.Object, namespace string, _ ...metav1.UpdateOptions) error {
	return s.update(gvr, obj, namespace, s.own)
}

// update replaces an object. own updates its field managers.
func (s *store) update(gvr schema.GroupVersionResource, obj runtime.Object, namespace string, own func(gvk schema.GroupVersionKind, old, object client.Object) (client.Object, error)) error {
	object, gvk, err := s.object(obj)
	if err != nil {
		return err
	}
	old := s.get(gvr, types.NamespacedName{Namespace: namespace, Name: object.GetName()})
	if old == nil {
		return apierrors.NewNotFound(gvr.GroupResource(), object.GetName())
	}
	object.SetUID(old.GetUID())
	object.SetCreationTimestamp(old.GetCreationTimestamp())
	object.SetGeneration(old.GetGeneration())
	if object.GetDeletionTimestamp() != nil && (old.GetDeletionTimestamp() == nil || grace(object) < grace(old)) {
		object.SetDeletionTimestamp(new(metav1.NewTime(s.world.now.Truncate(time.Second).Add(grace(object)))))
		object.SetGeneration(old.GetGeneration() + 1)
	} else {
		object.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if err := validateFinalizers(gvk, old, object); err != nil {
		return err
	}
	if err := s.world.admit(gvk, old, object); err != nil {
		return err
	}
	if specChanged(old, object) {
		object.SetGeneration(object.GetGeneration() + 1)
	}
	object.SetResourceVersion(old.GetResourceVersion())
	if same(old, object) {
		return nil
	}
	if object, err = own(gvk, old, object); err != nil {
		return err
	}
	return s.put(gvr, gvk, old, object)
}

// tracksFieldManagers reports whether updates and patches of a kind maintain field managers that
// clients can read. This is only the case for the kind whose field managers the operator reads.
func tracksFieldManagers(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "config.openshift.io" && gvk.Kind == "ClusterVersion"
}

// own returns the object with the request's field manager as the owner of the fields that the
// request changes. old is nil for a creation.
func (s *store) own(gvk schema.GroupVersionKind, old, object client.Object) (client.Object, error) {
	if !tracksFieldManagers(gvk) {
		return object, nil
	}
	manager, err := s.fieldManagers(gvk)
	if err != nil {
		return nil, err
	}
	var live runtime.Object
	if old != nil {
		live = old.DeepCopyObject()
	} else if live, err = s.scheme.New(gvk); err != nil {
		return nil, fmt.Errorf("creating %s: %w", gvk.Kind, err)
	}
	asStored := object.GetObjectKind().GroupVersionKind()
	live.GetObjectKind().SetGroupVersionKind(gvk)
	object.GetObjectKind().SetGroupVersionKind(gvk)
	owned, err := manager.Update(live, object, cmp.Or(s.world.fieldManager, s.world.actor))
	if err != nil {
		return nil, fmt.Errorf("updating the field managers of %s %s: %w", gvk.Kind, object.GetName(), err)
	}
	stampManagedFields(owned, s.world.now)
	owned.GetObjectKind().SetGroupVersionKind(asStored)
	result, ok := owned.(client.Object)
	if !ok {
		return nil, fmt.Errorf("updating the field managers of %T: it is no single object", owned)
	}
	return result, nil
}

func (s *store) fieldManagers(gvk schema.GroupVersionKind) (*managedfields.FieldManager, error) {
	manager, err := managedfields.NewDefaultFieldManager(managedfields.NewDeducedTypeConverter(), s.scheme, noDefaults{}, s.scheme, gvk, gvk.GroupVersion(), "", nil)
	if err != nil {
		return nil, fmt.Errorf("tracking the field managers of %s: %w", gvk.Kind, err)
	}
	return manager, nil
}

func (s *store) put(gvr schema.GroupVersionResource, gvk schema.GroupVersionKind, old, object client.Object) error {
	object.SetResourceVersion(s.nextVersion())
	stored := object.DeepCopyObject().(client.Object)
	if s.objects[gvr] == nil {
		s.objects[gvr] = map[types.NamespacedName]client.Object{}
	}
	s.objects[gvr][client.ObjectKeyFromObject(object)] = stored
	s.record(gvr, Change{Old: old, New: stored, Kind: gvk})
	return nil
}

// Patch stores the result of a patch.
func (s *store) Patch(gvr schema.GroupVersionResource, obj runtime.Object, namespace string, _ ...metav1.PatchOptions) error {
	return s.Update(gvr, obj, namespace)
}

// Apply merges an applied configuration. Unless the kind tracks field managers, only applied fields
// have an owner: updates and patches own nothing and therefore never cause a conflict.
func (s *store) Apply(gvr schema.GroupVersionResource, applied runtime.Object, namespace string, options ...metav1.PatchOptions) error {
	config, ok := applied.(client.Object)
	if !ok || len(options) != 1 {
		return fmt.Errorf("applying %T: it is no single object", applied)
	}
	gvk, err := apiutil.GVKForObject(config, s.scheme)
	if err != nil {
		return err
	}
	old := s.get(gvr, types.NamespacedName{Namespace: namespace, Name: config.GetName()})
	var live runtime.Object
	if old == nil {
		if live, err = s.scheme.New(gvk); err != nil {
			return err
		}
	} else {
		live = old.DeepCopyObject()
	}
	live.GetObjectKind().SetGroupVersionKind(gvk)
	manager, err := s.fieldManagers(gvk)
	if err != nil {
		return err
	}
	force := options[0].Force != nil && *options[0].Force
	if s.world.applied != nil && s.world.applied.GetName() == config.GetName() {
		applied = s.world.applied.DeepCopy()
	}
	merged, err := manager.Apply(live, applied, options[0].FieldManager, force)
	if err != nil {
		return err
	}
	stampManagedFields(merged, s.world.now)
	if old == nil {
		return s.Create(gvr, merged, namespace)
	}
	return s.update(gvr, merged, namespace, alreadyOwned)
}

// alreadyOwned returns an object that already contains its field managers.
func alreadyOwned(_ schema.GroupVersionKind, _, object client.Object) (client.Object, error) {
	return object, nil
}

// stampManagedFields replaces real with virtual times.
func stampManagedFields(obj runtime.Object, now time.Time) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	fields := accessor.GetManagedFields()
	for i := range fields {
		fields[i].Time = new(metav1.NewTime(now.Truncate(time.Second)))
	}
	accessor.SetManagedFields(fields)
}

type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

// Delete removes an object.
func (s *store) Delete(gvr schema.GroupVersionResource, namespace, name string, _ ...metav1.DeleteOptions) error {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	old := s.get(gvr, key)
	if old == nil {
		return apierrors.NewNotFound(gvr.GroupResource(), name)
	}
	gvk, err := apiutil.GVKForObject(old, s.scheme)
	if err != nil {
		return err
	}
	delete(s.objects[gvr], key)
	last := old.DeepCopyObject().(client.Object)
	last.SetResourceVersion(s.nextVersion())
	s.record(gvr, Change{Old: last, Kind: gvk})
	return nil
}

// Get returns a copy of an object.
func (s *store) Get(gvr schema.GroupVersionResource, namespace, name string, _ ...metav1.GetOptions) (runtime.Object, error) {
	object := s.get(gvr, types.NamespacedName{Namespace: namespace, Name: name})
	if object == nil {
		return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
	}
	return object.DeepCopyObject(), nil
}

// List returns copies of the objects of a kind.
func (s *store) List(gvr schema.GroupVersionResource, gvk schema.GroupVersionKind, namespace string, _ ...metav1.ListOptions) (runtime.Object, error) {
	listKind := gvk.GroupVersion().WithKind(gvk.Kind + "List")
	list, err := s.scheme.New(listKind)
	if err != nil {
		list = &unstructured.UnstructuredList{}
		list.GetObjectKind().SetGroupVersionKind(listKind)
	}
	var items []runtime.Object
	for _, object := range s.sorted(gvr, namespace) {
		items = append(items, object.DeepCopyObject())
	}
	return list, meta.SetList(list, items)
}

// Watch is not supported: caches follow the journal.
func (s *store) Watch(schema.GroupVersionResource, string, ...metav1.ListOptions) (watch.Interface, error) {
	return nil, errors.New("a simulated API server has no watches: the caches of its processes follow it")
}

func (s *store) object(obj runtime.Object) (client.Object, schema.GroupVersionKind, error) {
	object, ok := obj.(client.Object)
	if !ok {
		return nil, schema.GroupVersionKind{}, fmt.Errorf("storing %T: it is no single object", obj)
	}
	gvk, err := apiutil.GVKForObject(object, s.scheme)
	return object, gvk, err
}

// validateFinalizers returns the error with which an API server rejects a finalizer that is added
// to a deleted object.
func validateFinalizers(gvk schema.GroupVersionKind, old, object client.Object) error {
	if old.GetDeletionTimestamp() == nil {
		return nil
	}
	added := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(name string) bool {
		return slices.Contains(old.GetFinalizers(), name)
	})
	if len(added) == 0 {
		return nil
	}
	return apierrors.NewInvalid(gvk.GroupKind(), object.GetName(), field.ErrorList{field.Forbidden(
		field.NewPath("metadata", "finalizers"),
		fmt.Sprintf("no new finalizers can be added if the object is being deleted, found new finalizers %#v", added),
	)})
}

// grace returns how long a deleted pod may take to terminate.
func grace(object client.Object) time.Duration {
	if seconds := object.GetDeletionGracePeriodSeconds(); seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return 0
}

// clearStatus removes the status of an object that is being created.
func clearStatus(object client.Object) error {
	if u, ok := object.(*unstructured.Unstructured); ok {
		delete(u.Object, "status")
		return nil
	}
	field := reflect.ValueOf(object).Elem().FieldByName("Status")
	if !field.IsValid() {
		return fmt.Errorf("%T has no status", object)
	}
	field.SetZero()
	return nil
}

// specChanged reports whether anything except metadata and status differs.
func specChanged(old, updated client.Object) bool {
	a, b := specOf(old), specOf(updated)
	return a != nil && b != nil && !equality.Semantic.DeepEqual(a, b)
}

func specOf(object client.Object) any {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u.Object["spec"]
	}
	if field := reflect.ValueOf(object).Elem().FieldByName("Spec"); field.IsValid() {
		return field.Interface()
	}
	return nil
}

// same reports whether two states of an object are equal in everything that an API server stores.
func same(a, b client.Object) bool {
	x, y := shallow(a), shallow(b)
	return x != nil && y != nil && equality.Semantic.DeepEqual(x, y)
}

// shallow returns a shallow copy of the object without the fields whose changes do not count.
func shallow(object client.Object) client.Object {
	copied := reflect.New(reflect.TypeOf(object).Elem())
	copied.Elem().Set(reflect.ValueOf(object).Elem())
	result, ok := copied.Interface().(client.Object)
	if u, isMap := result.(*unstructured.Unstructured); isMap {
		result = u.DeepCopy() // the setters would modify the shared map
	}
	if !ok {
		return nil
	}
	if !isUnstructured(result) {
		result.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	result.SetManagedFields(nil)
	return result
}
