// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// OwnerKind is a kind whose attempts pause machine config pools and run hooks.
type OwnerKind struct {
	schema.GroupVersionKind

	// New returns an empty object, and NewList an empty list.
	New     func() client.Object
	NewList func() client.ObjectList

	// Number returns the number of an attempt, unique within its object. It stays the same if the record is
	// lost and made again.
	Number func(history.Record) int32

	finalizer string
	history   func(client.Object) []history.Record
	// version returns the version that distinguishes the upgrades of an object. It is empty if an object is one
	// upgrade.
	version func(history.Record) string
}

// JobOwners are UpgradeJobs. They number their attempts.
func JobOwners() OwnerKind {
	return OwnerKind{
		GroupVersionKind: maintenancev1beta1.GroupVersion.WithKind("UpgradeJob"),
		New:              func() client.Object { return &maintenancev1beta1.UpgradeJob{} },
		NewList:          func() client.ObjectList { return &maintenancev1beta1.UpgradeJobList{} },
		finalizer:        maintenancev1beta1.Finalizer,
		history: func(o client.Object) []history.Record {
			job, _ := o.(*maintenancev1beta1.UpgradeJob)
			return job.Status.History
		},
		Number:  func(record history.Record) int32 { return record.Attempt },
		version: func(history.Record) string { return "" },
	}
}

// ConfigOwners are UpgradeConfigs of upgrade.managed.openshift.io. They number the attempts at each version,
// and start again after a lost record, so version and time distinguish their attempts.
func ConfigOwners() OwnerKind {
	return OwnerKind{
		GroupVersionKind: upgradev1alpha1.GroupVersion.WithKind("UpgradeConfig"),
		New:              func() client.Object { return &upgradev1alpha1.UpgradeConfig{} },
		NewList:          func() client.ObjectList { return &upgradev1alpha1.UpgradeConfigList{} },
		finalizer:        upgradev1alpha1.Finalizer,
		history: func(o client.Object) []history.Record {
			cfg, _ := o.(*upgradev1alpha1.UpgradeConfig)
			return cfg.Status.History
		},
		Number: func(record history.Record) int32 {
			hash, _ := strconv.ParseUint(text.Hash(fmt.Sprintf("%q %q", record.Version, record.Key()), 4), 16, 32)
			return int32(hash%math.MaxInt32) + 1
		},
		version: func(record history.Record) string { return record.Version },
	}
}

// OwnerKinds returns all kinds of owners.
func OwnerKinds() []OwnerKind { return []OwnerKind{JobOwners(), ConfigOwners()} }

// Mark returns the key of the label or annotation that names an owner of this kind.
func (k OwnerKind) Mark() string { return k.Group + "/" + strings.ToLower(k.Kind) }

// Owner is an attempt that pauses machine config pools and runs hooks.
type Owner struct {
	OwnerKind

	Namespace, Name string
	UID             types.UID
	Labels          map[string]string
	// Attempt is the number of the attempt, unique within its object.
	Attempt int32
	// Version distinguishes the upgrades of an object. It is empty if the object is one upgrade.
	Version string
}

// Owner returns an attempt at an object of this kind.
func (k OwnerKind) Owner(object client.Object, record history.Record) Owner {
	return Owner{
		OwnerKind: k, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), Labels: object.GetLabels(),
		Attempt: k.Number(record), Version: k.version(record),
	}
}

// AttemptState is the state of an attempt.
type AttemptState int

// The states of an attempt.
const (
	AttemptEnded     AttemptState = iota
	AttemptOpen                   // it has not commenced
	AttemptCommenced              // it has commenced, and has not ended
)

// Attempt returns the state of an attempt of an object, and its record, or nil if there is none. If the record was
// lost, the attempt is resumed: it ends with the finalizer, or before another attempt begins.
func (k OwnerKind) Attempt(object client.Object, number int32) (AttemptState, *history.Record) {
	records := k.history(object)
	at := slices.IndexFunc(records, func(r history.Record) bool { return k.Number(r) == number })
	switch {
	case at < 0 && (len(records) == 0 || !slices.ContainsFunc(records, history.Record.InProgress) && slices.Contains(object.GetFinalizers(), k.finalizer)):
		return AttemptOpen, nil
	case at < 0:
		return AttemptEnded, nil
	case records[at].Finished():
		return AttemptEnded, &records[at]
	case records[at].CommenceTime == nil:
		return AttemptOpen, &records[at]
	}
	return AttemptCommenced, &records[at]
}

// HasEnded reports whether the latest attempt of an object has ended.
func (k OwnerKind) HasEnded(object client.Object) bool {
	records := k.history(object)
	return len(records) > 0 && !slices.ContainsFunc(records, func(r history.Record) bool { return !r.Finished() })
}
