// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// Holder is the object that holds the lock.
type Holder struct{ Group, Kind, Namespace, Name, UID string }

// String returns the name of the holder for messages.
func (h Holder) String() string {
	if h.Name == "" {
		return fmt.Sprintf("unknown holder %q of lease %s", h.Kind, Name)
	}
	return h.Kind + " " + h.Namespace + "/" + h.Name
}

// Is reports whether both are the same object. An identity of an earlier release has no group.
func (h Holder) Is(other Holder) bool {
	if h.Group == "" || other.Group == "" {
		h.Group, other.Group = "", ""
	}
	return h == other
}

// sameName reports whether both are objects of the same kind and name.
func (h Holder) sameName(other Holder) bool {
	h.UID, other.UID = "", ""
	return h.Name != "" && h.Is(other)
}

func (h Holder) identity() string {
	return strings.Join([]string{h.Group, h.Kind, h.Namespace, h.Name, h.UID}, "/")
}

// parseHolder parses an identity: group/kind/namespace/name/UID, or kind/namespace/name/UID from earlier
// releases. A group contains a dot, and a kind does not. Any other identity becomes the kind of a holder
// without a name. An empty one is the zero Holder.
func parseHolder(identity string) Holder {
	group, rest, _ := strings.Cut(identity, "/")
	if !strings.Contains(group, ".") {
		group, rest = "", identity
	}
	parts := strings.SplitN(rest, "/", 4)
	if len(parts) != 4 {
		return Holder{Kind: identity}
	}
	return Holder{Group: group, Kind: parts[0], Namespace: parts[1], Name: parts[2], UID: parts[3]}
}

// InProgress reports whether an attempt of a holder is in progress: any attempt if it is zero.
type InProgress func(context.Context, Holder, Attempt) (bool, error)

// Claimants returns the objects of a kind that have a lock according to their records.
type Claimants func(ctx context.Context, lock client.ObjectKey) ([]Holder, error)

// Abandon cleans up after a holder that no longer exists. It reports whether its upgrade has commenced and
// continues.
type Abandon func(context.Context, Holder, Attempt) (continues bool, err error)

// ManagedKind is a kind that this operator manages.
type ManagedKind struct {
	InProgress InProgress
	Claimants  Claimants
	Abandon    Abandon
}

// Holders decides whether a lock may be broken: it reports whether the upgrade of a holder is in progress, by
// its kind. It says no only if that is certain.
type Holders struct {
	// Live reads from the API server.
	Live client.Reader
	// Mapper maps kinds that this operator does not manage to their versions.
	Mapper meta.RESTMapper
	// Clock bounds how often the API server is queried.
	Clock clock.PassiveClock

	mu      sync.Mutex
	byKind  map[schema.GroupKind]ManagedKind
	checked check
}

// check is the last result for a holder of a foreign kind, which this operator does not manage.
type check struct {
	at      time.Time
	holder  Holder
	attempt Attempt
	result  bool
}

// checkInterval is how long the result for a holder of a foreign kind stays valid.
const checkInterval = time.Minute

// Register adds a kind that this operator manages.
func (h *Holders) Register(name schema.GroupKind, kind ManagedKind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byKind == nil {
		h.byKind = map[schema.GroupKind]ManagedKind{}
	}
	h.byKind[name] = kind
}

// Claimant returns an object, other than the given holder, of any managed kind that has the lock according to
// its record, or nil.
func (h *Holders) Claimant(ctx context.Context, lock client.ObjectKey, except Holder) (*Holder, error) {
	h.mu.Lock()
	kinds := maps.Clone(h.byKind)
	h.mu.Unlock()
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range names {
		claimants, err := kinds[name].Claimants(ctx, lock)
		if err != nil {
			return nil, fmt.Errorf("listing each %s that has the lock: %w", name.Kind, err)
		}
		for _, claimant := range claimants {
			if !claimant.Is(except) {
				return &claimant, nil
			}
		}
	}
	return nil, nil
}

// InProgress reports whether the upgrade of the holder is in progress. A holder that cannot be identified keeps
// the lock until a person deletes the Lease.
func (h *Holders) InProgress(ctx context.Context, holder Holder, attempt Attempt) (bool, error) {
	if holder.Name == "" {
		return true, nil
	}
	if kind := h.registered(holder); kind.InProgress != nil {
		return kind.InProgress(ctx, holder, attempt)
	}
	if holder.Group == "" {
		return true, nil
	}
	h.mu.Lock()
	last := h.checked
	h.mu.Unlock()
	now := h.Clock.Now()
	if age := now.Sub(last.at); last.holder == holder && last.attempt == attempt && age >= 0 && age < checkInterval {
		return last.result, nil
	}
	result, err := h.checkForeign(ctx, holder, attempt)
	if err != nil {
		return false, err
	}
	h.mu.Lock()
	h.checked = check{now, holder, attempt, result}
	h.mu.Unlock()
	return result, nil
}

// Abandon cleans up after a holder of a managed kind that no longer exists. It reports whether its upgrade has
// commenced and continues.
func (h *Holders) Abandon(ctx context.Context, holder Holder, attempt Attempt) (continues bool, err error) {
	if kind := h.registered(holder); kind.Abandon != nil {
		return kind.Abandon(ctx, holder, attempt)
	}
	return false, nil
}

// registered returns the kind of the holder, or zero if this operator does not manage it. An identity without a
// group comes from an earlier release.
func (h *Holders) registered(holder Holder) ManagedKind {
	h.mu.Lock()
	defer h.mu.Unlock()
	if holder.Group != "" {
		return h.byKind[schema.GroupKind{Group: holder.Group, Kind: holder.Kind}]
	}
	return h.byKind[schema.GroupKind{Group: formerGroup, Kind: holder.Kind}]
}

// formerGroup is the group of all holders that earlier releases wrote.
const formerGroup = "upgrade.managed.openshift.io"

// checkForeign reads a holder of a foreign kind from the API server. All kinds of upgrade objects have a
// status.history as package history defines it.
func (h *Holders) checkForeign(ctx context.Context, holder Holder, attempt Attempt) (bool, error) {
	mapping, err := h.Mapper.RESTMapping(schema.GroupKind{Group: holder.Group, Kind: holder.Kind})
	if meta.IsNoMatchError(err) { // the kind was removed, and all its objects with it
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("finding the version of %s: %w", holder, err)
	}
	var obj unstructured.Unstructured
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	err = h.Live.Get(ctx, client.ObjectKey{Namespace: holder.Namespace, Name: holder.Name}, &obj)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting %s: %w", holder, err)
	}
	if string(obj.GetUID()) != holder.UID {
		return false, nil
	}
	var status struct {
		Status struct {
			History []history.Record `json:"history"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &status); err != nil {
		return false, fmt.Errorf("reading the history of %s: %w", holder, err)
	}
	return !history.AttemptFinished(status.Status.History, attempt.Version, attempt.Key), nil
}
