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

// Limits limits what is kept of a dump. File sizes are not limited.
type Limits struct {
	files         int // files and folders in the tree
	documentBytes int // per object or list item; a larger one counts as malformed
	objects       int
	bytes         int // of all objects kept
}

// DefaultLimits is sufficient for a must-gather of a cluster with 10,000 nodes.
var DefaultLimits = Limits{files: 1_000_000, documentBytes: 64 << 20, objects: 1_000_000, bytes: 2 << 30}

// Dump holds the objects of a folder. It implements client.Reader.
//
// Reads of a kind succeed only if the folder contains an object or list of the kind and no file with such
// objects is malformed. Anything missing from a dump is unknown, not absent.
type Dump struct {
	Path     string
	scheme   *runtime.Scheme
	objects  map[schema.GroupVersionKind]map[types.NamespacedName]client.Object
	seen     map[schema.GroupKind]bool
	partial  map[string]string // messages for kinds that may be incomplete; the key "" stands for all kinds
	Problems []string          // messages about files
	alerts   *alerts           // nil if the folder contains no alerts
	Newest   time.Time         // latest past time in any object
	limits   Limits
	count    int           // of objects
	kept     int           // approximate size of the objects in bytes
	buffer   *bufio.Reader // reused for each file
}

// New returns an empty dump.
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
	root, err := os.OpenRoot(dir) // links must not lead out of the folder
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

// errLimit stops reading a dump.
var errLimit = errors.New("limit")

// walk reads the files of the tree in name order, or only the named file.
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

// isUnreadable records a file or folder that cannot be read and reports whether it did.
func (d *Dump) isUnreadable(name string, err error) bool {
	if err != nil {
		d.problem(name, "", "cannot be read: "+err.Error())
	}
	return err != nil
}

// reader returns a buffered reader for a file. It is valid until the next file is read.
func (d *Dump) reader(in io.Reader) *bufio.Reader {
	if d.buffer == nil {
		d.buffer = bufio.NewReaderSize(in, ioBytes)
	}
	d.buffer.Reset(in)
	return d.buffer
}

// readFile adds the objects in a file.
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

// problem records that objects in a file are missing. kind is their kind, "" for the kinds in the file's
// path, or "*" for any kind.
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

// add stores an object after removing parts that are never read.
func (d *Dump) add(object *unstructured.Unstructured) {
	newest := newestTime(object)
	object.SetManagedFields(nil)
	switch object.GetKind() {
	case "MachineConfig":
		unstructured.RemoveNestedField(object.Object, "spec", "config") // files on the nodes
	case "Node":
		unstructured.RemoveNestedField(object.Object, "status", "images")
	}
	d.store(object.GroupVersionKind(), types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, object, newest)
}

// store stores an object. If there are several versions of an object, the latest one is kept.
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

// noteTime records the time of an event.
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

// newestTime returns the latest time in an object.
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

// sorted returns the objects of a kind, sorted by namespace and name. If namespace is empty, it includes all
// namespaces.
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
