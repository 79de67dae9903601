// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
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

// dumpLimits bound what is read of a dump.
type dumpLimits struct {
	files     int   // files and folders in the tree
	fileBytes int64 // of a file; a larger one counts as broken
	bytes     int64 // of all files that have objects
	objects   int
}

// defaultDumpLimits are large enough for a must-gather of a cluster with 2,000 nodes.
var defaultDumpLimits = dumpLimits{files: 1_000_000, fileBytes: 256 << 20, bytes: 1 << 30, objects: 250_000}

// dump holds the objects of a folder. It implements client.Reader.
//
// A kind is answered for only if the folder has an object or a list of it, and no file with objects of
// that kind is broken: what is not in a dump is unknown, not absent.
type dump struct {
	path     string
	scheme   *runtime.Scheme
	objects  map[schema.GroupVersionKind]map[types.NamespacedName]*unstructured.Unstructured
	seen     map[schema.GroupKind]bool
	partial  map[string]string // message by kind, for kinds that may lack objects; "" is every kind
	problems []string          // messages about files
	alerts   *dumpAlerts       // nil means that the folder has none
	newest   time.Time         // the latest time that an object reports as past
	count    int
}

// newDump returns a dump without objects.
func newDump(scheme *runtime.Scheme) *dump {
	return &dump{
		scheme: scheme, seen: map[schema.GroupKind]bool{}, partial: map[string]string{},
		objects: map[schema.GroupVersionKind]map[types.NamespacedName]*unstructured.Unstructured{},
	}
}

// readDump reads a folder or a file.
func readDump(path string, scheme *runtime.Scheme, limits dumpLimits) (*dump, error) {
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
	d := newDump(scheme)
	d.path = path
	if err := d.walk(root, only, limits); err != nil {
		return nil, fmt.Errorf("--replay: %w", err)
	}
	if len(d.seen) == 0 && d.alerts == nil && len(d.problems) == 0 {
		return nil, fmt.Errorf("--replay: %s has no Kubernetes objects; create a dump with \"oc adm must-gather\" or \"oc get -o yaml\"", path)
	}
	return d, nil
}

// errLimit ends the reading of a dump.
var errLimit = errors.New("limit")

// walk reads the files of the tree, or only the named one, in the order of their names.
func (d *dump) walk(root *os.Root, only string, limits dumpLimits) error {
	files, bytes := 0, int64(0)
	err := fs.WalkDir(root.FS(), cmp.Or(only, "."), func(name string, entry fs.DirEntry, err error) error {
		if d.isUnreadable(name, err) {
			return nil
		}
		files++
		if files > limits.files || d.count > limits.objects || bytes > limits.bytes {
			d.problem(name, "*", "and further files are not read: the dump is too large")
			return errLimit
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		read, err := d.readFile(root, name, limits)
		bytes += read
		d.isUnreadable(name, err)
		return nil
	})
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

// isUnreadable reports whether a file or a folder cannot be read, and records that.
func (d *dump) isUnreadable(name string, err error) bool {
	if err != nil {
		d.problem(name, "", "cannot be read: "+err.Error())
	}
	return err != nil
}

// readFile adds the objects of a file, and returns its size if it has any.
func (d *dump) readFile(root *os.Root, name string, limits dumpLimits) (int64, error) {
	file, err := root.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	start := make([]byte, min(info.Size(), sniffBytes))
	if _, err := file.ReadAt(start, 0); err != nil {
		return 0, err
	}
	format := formatOf(name, start)
	switch {
	case format == formatOther:
		return 0, nil
	case info.Size() == 0:
		d.problem(name, "", "is empty")
		return 0, nil
	case info.Size() > limits.fileBytes:
		d.problem(name, kindIn(start), fmt.Sprintf("is larger than %d MiB", limits.fileBytes>>20))
		return 0, nil
	}
	content := make([]byte, info.Size())
	if _, err := file.ReadAt(content, 0); err != nil {
		return 0, err
	}
	if format == formatJSON {
		d.addJSON(name, content)
	} else {
		d.addYAML(name, content)
	}
	return info.Size(), nil
}

// problem records that a file lacks objects: those of a kind, those of the kinds that its path names
// if kind is empty, or those of every kind if it is "*".
func (d *dump) problem(file, kind, message string) {
	message = file + " " + message
	d.problems = append(d.problems, message)
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

// add stores an object. Of two with the same name, the one that was read later from the API server is
// kept.
func (d *dump) add(object *unstructured.Unstructured) {
	gvk := object.GroupVersionKind()
	d.seen[gvk.GroupKind()] = true
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	if d.objects[gvk] == nil {
		d.objects[gvk] = map[types.NamespacedName]*unstructured.Unstructured{}
	}
	if old := d.objects[gvk][key]; old != nil && resourceVersion(old) >= resourceVersion(object) {
		return
	}
	d.objects[gvk][key] = object
	d.count++
	if newest := newestTime(object); newest.After(d.newest) {
		d.newest = newest
	}
	object.SetManagedFields(nil)
	if gvk.Kind == "MachineConfig" {
		unstructured.RemoveNestedField(object.Object, "spec", "config") // files of nodes
	}
}

func resourceVersion(object *unstructured.Unstructured) uint64 {
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
	if object.GetKind() == "Lease" {
		value, _, _ := unstructured.NestedString(object.Object, "spec", "renewTime")
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
func (d *dump) sorted(gvk schema.GroupVersionKind, namespace string) []client.Object {
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
