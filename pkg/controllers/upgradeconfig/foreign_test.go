// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

var definitions = sync.OnceValues(func() ([]*simulation.Definition, error) {
	return simulation.Definitions(os.DirFS("../../../deploy/crds"))
})

// checkForeign has the operator manage an UpgradeConfig whose metadata and status another client has written,
// delete it after an hour, and reports whether the API server accepts what was generated. Every write of the
// operator must be accepted then.
func checkForeign(t *testing.T, seed uint64) (accepted bool) {
	t.Helper()
	g := &devtest.Generator{
		Rand:   rand.New(rand.NewPCG(seed, 26)),
		Kinds:  map[string]string{"version": "version", "reason": "reason", "type": "reason"},
		Seldom: []string{"previousAttempts", "items"}, Required: []string{"history"},
	}
	definitions, err := definitions()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorldWith(t, definitions)
	w.foreign = true
	cfg := upgradeConfig(upgrade)
	g.Metadata(cfg, []string{"upgrade.managed.openshift.io/type", "upgrade.managed.openshift.io/requested", v1alpha1.HoldAnnotation}, []string{v1alpha1.Finalizer})
	w.create(cfg)
	crd := devtest.Definitions(t, "../../../deploy/crds")
	for i := range crd {
		if crd[i].Spec.Group != v1alpha1.GroupVersion.Group {
			continue
		}
		status := crd[i].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		data, err := json.Marshal(g.Value("status", &status))
		if err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(data, &cfg.Status) != nil {
			return false // the API server accepts only what decodes: TestAcceptedObjectsDecode
		}
	}
	for i := range cfg.Status.History {
		if cfg.Status.History[i].Version = pick(g.IntN(3), "4.4.5", desired, "4.5.1"); g.IntN(2) == 0 {
			cfg.Status.History[i].UpgradeAt = &metav1.Time{Time: tenPast}
		}
	}
	if err := w.client.Status().Update(t.Context(), cfg); err != nil {
		if !apierrors.IsInvalid(err) {
			t.Fatal(err)
		}
		return false
	}
	w.runFor(time.Hour)
	w.expectNoRejection(seed)
	w.must(w.client.Delete(t.Context(), w.get(upgrade)))
	w.runFor(time.Hour)
	w.expectNoRejection(seed)
	return true
}

func pick(i int, from ...string) string { return from[i] }

func (w *world) expectNoRejection(seed uint64) {
	w.t.Helper()
	for _, err := range w.errors {
		if apierrors.IsInvalid(err) {
			w.t.Errorf("seed %d: %v", seed, err)
		}
	}
	if shown := w.describe(); strings.Contains(shown, "StatusInvalid") {
		w.t.Errorf("seed %d: the API server rejected a write; %s", seed, shown)
	}
}

func TestForeignObjects(t *testing.T) {
	t.Parallel()
	accepted, seeds := 0, simulation.Sample(12)
	for _, seed := range seeds {
		if checkForeign(t, uint64(seed)) {
			accepted++
		}
	}
	t.Logf("%d of %d statuses are accepted", accepted, len(seeds))
	if accepted < len(seeds)/5 {
		t.Errorf("only %d of %d statuses are accepted: the test tries little", accepted, len(seeds))
	}
}

func FuzzForeignObjects(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkForeign(t, seed) })
}
