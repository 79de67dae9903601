// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Limits bound what is kept of a dump. The size of its files does not count.
type Limits struct {
	files         int // files and folders in the tree
	documentBytes int // of an object, or of an item of a list; a larger one counts as broken
	objects       int
	bytes         int // of all objects that are kept
}

// DefaultLimits are large enough for a must-gather of a cluster with 10,000 nodes.
var DefaultLimits = Limits{files: 1_000_000, documentBytes: 64 << 20, objects: 1_000_000, bytes: 2 << 30}

// Dump holds the objects of a folder. It implements client.Reader.
//
// A kind is answered for only if the folder has an object or a list of it, and no file with objects of
// that kind is broken: what is not in a dump is unknown, not absent.
type Dump struct {
	Path     string
	scheme   *runtime.Scheme
	objects  map[schema.GroupVersionKind]map[types.NamespacedName]client.Object
	seen     map[schema.GroupKind]bool
	partial  map[string]string // message by kind, for kinds that may lack objects; "" is every kind
	Problems []string          // messages about files
	alerts   *alerts           // nil if the folder has no alerts
	Newest   time.Time         // the latest time that an object reports as past
	limits   Limits
	count    int           // of objects
	kept     int           // bytes of them, about
	buffer   *bufio.Reader // reused for each file
}

// New returns a dump without objects.
func New(scheme *runtime.Scheme, limits Limits) *Dump {
	return &Dump{
		scheme: scheme, seen: map[schema.GroupKind]bool{}, partial: map[string]string{}, limits: limits,
		objects: map[schema.GroupVersionKind]map[types.NamespacedName]client.Object{},
	}
}

// Read reads a folder or a file.
func Read(path string, scheme *runtime.Scheme, limits Limits) (*Dump, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("--replay: %w", err)
	}
	dir, only := path, ""
	if !info.IsDir() {
		dir, only = filepath.Dir(path), filepath.Base(path)
	}
	root, err := os.OpenRoot(dir) // no link leads out of the folder
	if err != nil {
		return nil, fmt.Errorf("--replay: %w", err)
	}
	defer root.Close()
	d := New(scheme, limits)
	d.Path = path
	if err := d.walk(root, only); err != nil {
		return nil, fmt.Errorf("--replay: %w", err)
	}
	if len(d.seen) == 0 && d.alerts == nil && len(d.Problems) == 0 {
		return nil, fmt.Errorf("--replay: %s has no Kubernetes objects; create a dump with \"oc adm must-gather\" or \"oc get -o yaml\"", path)
	}
	return d, nil
}

// errLimit ends the reading of a dump.
var errLimit = errors.New("limit")

// walk reads the files of the tree, or only the named one, in the order of their names.
func (d *Dump) walk(root *os.Root, only string) error {
	files := 0
	err := fs.WalkDir(root.FS(), cmp.Or(only, "."), func(name string, entry fs.DirEntry, err error) error {
		if d.isUnreadable(name, err) {
			return nil
		}
		files++
		err = nil
		if files > d.limits.files {
			err = errLimit
		} else if entry.Type().IsRegular() {
			err = d.readFile(root, name)
		}
		if errors.Is(err, errLimit) {
			d.problem(name, "*", "and further files are not read: the dump is too large")
			return err
		}
		d.isUnreadable(name, err)
		return nil
	})
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

// isUnreadable reports whether a file or a folder cannot be read, and records that.
func (d *Dump) isUnreadable(name string, err error) bool {
	if err != nil {
		d.problem(name, "", "cannot be read: "+err.Error())
	}
	return err != nil
}

// reader returns a buffered reader of a file. It is valid until the next file is read.
func (d *Dump) reader(in io.Reader) *bufio.Reader {
	if d.buffer == nil {
		d.buffer = bufio.NewReaderSize(in, ioBytes)
	}
	d.buffer.Reset(in)
	return d.buffer
}

// readFile adds the objects of a file.
func (d *Dump) readFile(root *os.Root, name string) error {
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	start := make([]byte, min(info.Size(), sniffBytes))
	if _, err := file.ReadAt(start, 0); err != nil {
		return err
	}
	switch format := formatOf(name, start); {
	case format == formatOther:
		return nil
	case info.Size() == 0:
		d.problem(name, "", "is empty")
		return nil
	case format == formatJSON:
		return d.addJSON(name, file)
	default:
		return d.addYAML(name, file)
	}
}

// problem records that a file lacks objects: objects of the given kind, objects of the kinds that its path names if
// kind is empty, or objects of every kind if it is "*".
func (d *Dump) problem(file, kind, message string) {
	message = file + " " + message
	d.Problems = append(d.Problems, message)
	switch kind {
	case "*":
		d.partial[""] = message
	case "":
		for _, kind := range kindsOfPath(file) {
			d.partial[kind] = message
		}
	default:
		d.partial[strings.TrimSuffix(kind, "List")] = message
	}
}

// add stores an object, without what is not read.
func (d *Dump) add(object *unstructured.Unstructured) {
	newest := newestTime(object)
	object.SetManagedFields(nil)
	switch object.GetKind() {
	case "MachineConfig":
		unstructured.RemoveNestedField(object.Object, "spec", "config") // files of nodes
	case "Node":
		unstructured.RemoveNestedField(object.Object, "status", "images")
	}
	d.store(object.GroupVersionKind(), types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, object, newest)
}

// store stores an object. If two have the same name, the one that was read later from the API server is
// kept.
func (d *Dump) store(gvk schema.GroupVersionKind, key types.NamespacedName, object client.Object, newest time.Time) {
	d.seen[gvk.GroupKind()] = true
	if d.objects[gvk] == nil {
		d.objects[gvk] = map[types.NamespacedName]client.Object{}
	}
	if old := d.objects[gvk][key]; old != nil && resourceVersion(old) >= resourceVersion(object) {
		return
	}
	d.objects[gvk][key] = object
	d.count++
	d.noteTime(newest)
}

// noteTime notes when something happened.
func (d *Dump) noteTime(at time.Time) {
	if at.After(d.Newest) {
		d.Newest = at
	}
}

func resourceVersion(object client.Object) uint64 {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// newestTime returns the latest time at which something happened to the object.
func newestTime(object *unstructured.Unstructured) time.Time {
	newest := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(newest) {
			newest = entry.Time.Time
		}
	}
	values := []string{}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok {
			for _, field := range []string{"lastHeartbeatTime", "lastTransitionTime"} {
				value, _ := fields[field].(string)
				values = append(values, value)
			}
		}
	}
	for _, path := range map[string][][]string{"Lease": {{"spec", "renewTime"}}, "Event": {{"lastTimestamp"}, {"series", "lastObservedTime"}}}[object.GetKind()] {
		value, _, _ := unstructured.NestedString(object.Object, path...)
		values = append(values, value)
	}
	for _, value := range values {
		if at, err := time.Parse(time.RFC3339Nano, value); err == nil && at.After(newest) {
			newest = at
		}
	}
	return newest
}

// sorted returns the objects of a kind by namespace and name; an empty namespace means all.
func (d *Dump) sorted(gvk schema.GroupVersionKind, namespace string) []client.Object {
	var sorted []client.Object
	for _, object := range d.objects[gvk] {
		if namespace == "" || object.GetNamespace() == namespace {
			sorted = append(sorted, object)
		}
	}
	slices.SortFunc(sorted, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return sorted
}
