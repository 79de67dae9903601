// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// newGenerator returns a generator of objects of this package.
func newGenerator(seed1, seed2 uint64) *crdtest.Generator {
	return &crdtest.Generator{
		Rand: rand.New(rand.NewPCG(seed1, seed2)),
		Kinds: map[string]string{
			"pinVersionWindow": "duration", "maxUpgradeStartDelay": "duration", "upgradeTimeout": "duration", "timeout": "duration", "forceDrainAfter": "duration",
			"startAfter": "time", "startBefore": "late", "start": "time", "end": "late", "from": "time",
			"cron": "cron", "isoWeek": "isoWeek", "location": "location", "version": "version", "image": "image", "operator": "operator", "reason": "reason",
			"alertname": "alert",
		},
		Parts: map[string]func(*crdtest.Generator) any{
			"matchLabels": func(g *crdtest.Generator) any { // no schema says that the labels of pools are text: the controller refuses others
				labels := map[string]any{"a": g.Text("name")}
				if g.IntN(4) == 0 {
					labels = map[string]any{"matchLabels": labels}
				}
				return labels
			},
			"delayUpgrade": func(g *crdtest.Generator) any { // lengths of time, where the fields of other objects have times
				names := []string{"delayMin", "delayMax"}
				if g.IntN(2) == 0 {
					names = []string{"startAfter", "startBefore"}
				}
				return map[string]any{names[0]: g.Text("duration"), names[1]: g.Text("duration")}
			},
		},
	}
}

// convert converts a Duration and a Timestamp.
func convert(value any) (err error) {
	switch value := value.(type) {
	case maintenancev1beta1.Duration:
		_, err = maintenance.Duration(value)
	case maintenancev1beta1.Timestamp:
		_, err = maintenance.Time(value)
	}
	return err
}

func decodings(tb testing.TB) map[string]crdtest.Decoding {
	tb.Helper()
	decoder := crdtest.StrictDecoder(tb, maintenancev1beta1.AddToScheme)
	all := map[string]crdtest.Decoding{}
	validators := crdtest.Validators(tb, definitionsFolder, maintenancev1beta1.GroupVersion.Group)
	for kind, crd := range crds(tb) {
		all[kind] = crdtest.Decoding{Definition: crd, Validator: validators[kind], Decoder: decoder, Convert: convert}
	}
	return all
}

func TestAcceptedObjectsDecode(t *testing.T) {
	t.Parallel()
	for kind, d := range decodings(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d.Check(t, newGenerator(2027, 3), 400)
		})
	}
}

func FuzzAcceptedObjectsDecode(f *testing.F) {
	all := decodings(f)
	kinds := slices.Sorted(maps.Keys(all))
	for i := range uint64(len(kinds)) {
		f.Add(i, i)
	}
	f.Fuzz(func(t *testing.T, kind, seed uint64) {
		all[kinds[kind%uint64(len(kinds))]].Try(t, newGenerator(seed, kind))
	})
}
