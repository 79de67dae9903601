// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// Foreign tests an upgrade object whose metadata and status another client has written in any way
// that the API server accepts. After that, no write by the operator may be rejected as invalid.
type Foreign[T client.Object] struct {
	// World validates the objects and runs the operator, whose actor is "operator".
	World *simulation.World
	// Definition is the definition of the kind.
	Definition *apiextensionsv1.CustomResourceDefinition
	// Object is a valid object that does not exist yet.
	Object T
	// Status points to the status of Object, and History to the history in that status.
	Status  any
	History *[]history.Record
	// Versions are the versions of generated records. A generated record that starts at Start is
	// resumed.
	Versions []string
	Start    time.Time
	// Annotations are annotation keys that the operator reads, and Finalizers the finalizers that it
	// sets.
	Annotations, Finalizers []string
}

// Run writes the objects generated from a seed, lets the operator manage the object for d, and
// deletes it. It reports whether the API server accepted what was generated.
func (f Foreign[T]) Run(t *testing.T, seed uint64, d time.Duration) (accepted bool) {
	t.Helper()
	g := &Generator{
		Rand:   rand.New(rand.NewPCG(seed, 26)), //nolint:gosec // a seed repeats a test
		Kinds:  map[string]string{"version": "version", "reason": "reason", "type": "reason"},
		Seldom: []string{"previousAttempts", "items"}, Required: []string{"history"},
	}
	for _, field := range []string{
		"upgradeAt", "requestTime", "startTime", "commenceTime", "completeTime", "workerStartTime", "workerCompleteTime", "notifiedTime",
		"nextTime", "lastProbeTime", "lastTransitionTime", "reasonTime", "releaseAfter",
	} {
		g.Kinds[field] = "instant"
	}
	g.Metadata(f.Object, f.Annotations, f.Finalizers)
	user := f.World.Client("user")
	if err := user.Create(t.Context(), f.Object); err != nil {
		t.Fatal(err)
	}
	if !f.generateStatus(t, g) {
		return false
	}
	switch err := user.Status().Update(t.Context(), f.Object); {
	case apierrors.IsInvalid(err):
		return false
	case err != nil:
		t.Fatal(err)
	}
	f.runFor(t, d)
	if err := user.Delete(t.Context(), f.Object); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	f.runFor(t, d)
	if errs := f.World.Invalid("operator"); len(errs) > 0 {
		t.Errorf("seed %d: %d writes are rejected, the first because %v", seed, len(errs), errs[0])
	}
	return true
}

// generateStatus reports whether the object can have the generated status: the API server accepts
// only what can be decoded (see Decoding).
func (f Foreign[T]) generateStatus(t *testing.T, g *Generator) bool {
	t.Helper()
	schema := f.Definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	data, err := json.Marshal(g.Value("status", &schema))
	if err != nil {
		t.Fatal(err)
	}
	if json.Unmarshal(data, f.Status) != nil {
		return false
	}
	for i := range *f.History {
		record := &(*f.History)[i]
		if record.Version = pick(g, f.Versions); g.oneIn(2) {
			record.UpgradeAt = &metav1.Time{Time: f.Start}
		}
		if g.oneIn(2) {
			record.Phase, record.CompleteTime = history.PhaseFailed, &metav1.Time{Time: f.Start}
		}
		if g.oneIn(3) {
			record.Attempt = math.MaxInt32
		}
		record.Reason = pick(g, []string{"", "TargetRefused", "no reason of a condition"})
	}
	return true
}

func (f Foreign[T]) runFor(t *testing.T, d time.Duration) {
	t.Helper()
	if err := f.World.RunFor(d); err != nil {
		t.Fatal(err)
	}
}

// CheckForeign calls run for each seed and fails unless the API server accepts at least a fifth of
// the generated objects.
func CheckForeign(t *testing.T, seeds int, run func(seed uint64) (accepted bool)) {
	t.Helper()
	accepted, all := 0, simulation.Sample(seeds)
	for _, seed := range all {
		if run(uint64(seed)) {
			accepted++
		}
	}
	t.Logf("%d of %d statuses are accepted", accepted, len(all))
	if accepted < len(all)/5 {
		t.Errorf("only %d of %d statuses are accepted: the test tries little", accepted, len(all))
	}
}
