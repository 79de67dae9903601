// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

const image447 = "quay.io/openshift-release-dev/ocp-release@sha256:447"

// clusterVersion describes a ClusterVersion at 4.4.5. 4.4.6 is available.
type clusterVersion struct {
	history     []configv1.UpdateHistory
	desired     *configv1.Update
	unobserved  bool
	unavailable bool   // 4.4.6 is not available
	twice       bool   // 4.4.6 is available with two images
	refused     string // message of ReleaseAccepted=False
	arch        configv1.ClusterVersionArchitecture
	managers    []metav1.ManagedFieldsEntry
}

func (c clusterVersion) facts() clusterstate.Version { return clusterstate.VersionOf(c.object()) }

func (c clusterVersion) object() *configv1.ClusterVersion {
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Generation: 2, ManagedFields: c.managers}}
	version.Spec.DesiredUpdate = c.desired
	status := &version.Status
	status.ObservedGeneration = 2
	if c.unobserved {
		status.ObservedGeneration = 1
	}
	status.History = c.history
	if c.history == nil {
		status.History = []configv1.UpdateHistory{entry("4.4.5", image445, configv1.CompletedUpdate)}
	}
	if len(status.History) > 0 {
		status.Desired = configv1.Release{Version: status.History[0].Version, Image: status.History[0].Image, Architecture: c.arch}
	}
	if !c.unavailable {
		status.AvailableUpdates = []configv1.Release{{Version: "4.4.6", Image: image446}}
	}
	if c.twice {
		status.AvailableUpdates = append(status.AvailableUpdates, configv1.Release{Version: "4.4.6", Image: image447})
	}
	if c.refused != "" {
		status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: "ReleaseAccepted", Status: "False", Reason: "RetrievePayload", Message: c.refused}}
	}
	return version
}

func to(version, image string) *configv1.Update {
	return &configv1.Update{Version: version, Image: image}
}

func forced(update *configv1.Update) *configv1.Update {
	update.Force = true
	return update
}

func TestObserve(t *testing.T) {
	t.Parallel()
	partial := func(version, image string) []configv1.UpdateHistory {
		return []configv1.UpdateHistory{entry(version, image, configv1.PartialUpdate), entry("4.4.5", image445, configv1.CompletedUpdate)}
	}
	completed := func(version, image string) []configv1.UpdateHistory {
		return []configv1.UpdateHistory{entry(version, image, configv1.CompletedUpdate), entry("4.4.5", image445, configv1.CompletedUpdate)}
	}
	multi := func(version string) *configv1.Update {
		return &configv1.Update{Version: version, Architecture: configv1.ClusterVersionArchitectureMulti}
	}
	const refused446, refused447 = `failed version="4.4.6" image="` + image446 + `"`, `failed version="4.4.7" image="` + image447 + `"`
	for name, tc := range map[string]struct {
		version clusterVersion
		target  clusterstate.Target // 4.4.6 if empty
		want    clusterstate.Observed
	}{
		// The newest entry of the history takes precedence.
		"target is installed":                                {version: clusterVersion{history: completed("4.4.6", image446)}, want: clusterstate.ObservedDone},
		"target is installed, another release is requested":  {version: clusterVersion{history: completed("4.4.6", image446), desired: to("4.4.7", image447)}, want: clusterstate.ObservedDone},
		"target is being installed":                          {version: clusterVersion{history: partial("4.4.6", image446), desired: to("4.4.6", "")}, want: clusterstate.ObservedBegun},
		"target is being installed, its request was removed": {version: clusterVersion{history: partial("4.4.6", image446)}, want: clusterstate.ObservedBegun},
		"target is being installed, the former release is requested by its version": {
			version: clusterVersion{history: partial("4.4.6", image446), desired: to("4.4.5", "")}, want: clusterstate.ObservedBegun,
		},
		"target is being installed, the former release is requested by its image": {
			version: clusterVersion{history: partial("4.4.6", image446), desired: to("4.4.5", image445)}, want: clusterstate.ObservedBegun,
		},
		"target is being installed from a mirror": {
			version: clusterVersion{history: partial("4.4.6", "mirror.example.com/ocp@sha256:446")}, target: clusterstate.Target{Version: "4.4.6", Image: image446},
			want: clusterstate.ObservedBegun,
		},
		"target's version is being installed with another image": {
			version: clusterVersion{history: partial("4.4.6", image447)}, target: clusterstate.Target{Version: "4.4.6", Image: image446}, want: clusterstate.ObservedOther,
		},
		"target was installed before the current release": {version: clusterVersion{history: []configv1.UpdateHistory{
			entry("4.4.5", image445, configv1.CompletedUpdate), entry("4.4.6", image446, configv1.PartialUpdate),
		}}, want: clusterstate.ObservedNone},

		// Nothing is being installed, and no request can start.
		"no request":                                             {want: clusterstate.ObservedNone},
		"no history and request":                                 {version: clusterVersion{history: []configv1.UpdateHistory{}}, want: clusterstate.ObservedNone},
		"request without a field":                                {version: clusterVersion{desired: &configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "SlowBoot"}}}}, want: clusterstate.ObservedNone},
		"request for a mere check":                               {version: clusterVersion{desired: &configv1.Update{Version: "4.4.6", Mode: configv1.UpdateModePreflight}}, want: clusterstate.ObservedNone},
		"leftover request for the current release":               {version: clusterVersion{desired: to("4.4.5", image445)}, want: clusterstate.ObservedNone},
		"leftover request for the current release, not observed": {version: clusterVersion{desired: to("4.4.5", ""), unobserved: true}, want: clusterstate.ObservedNone},
		"leftover request for a former release by its version":   {version: clusterVersion{desired: to("4.4.4", "")}, want: clusterstate.ObservedNone},
		"another release is requested and refused":               {version: clusterVersion{desired: to("4.4.7", image447), refused: refused447}, want: clusterstate.ObservedNone},
		"another release is requested that is not available":     {version: clusterVersion{desired: to("4.4.7", "")}, want: clusterstate.ObservedNone},
		"another release is requested with the current image":    {version: clusterVersion{desired: to("4.4.7", image445)}, want: clusterstate.ObservedNone},
		"another image of the version is requested and refused": {
			version: clusterVersion{desired: to("4.4.6", image447), refused: `failed version="4.4.6" image="` + image447 + `"`},
			target:  clusterstate.Target{Version: "4.4.6", Image: image446}, want: clusterstate.ObservedNone,
		},
		"a change of the architecture that is not available": {version: clusterVersion{desired: multi("4.4.5"), arch: "amd64"}, want: clusterstate.ObservedNone},

		// The target is requested, but the request has no effect.
		"target is requested with the current image":        {version: clusterVersion{desired: to("4.4.6", image445)}, want: clusterstate.ObservedIgnored},
		"target is forced with the current image":           {version: clusterVersion{desired: forced(to("4.4.6", image445))}, want: clusterstate.ObservedIgnored},
		"target is requested by its version, not available": {version: clusterVersion{desired: to("4.4.6", ""), unavailable: true}, want: clusterstate.ObservedIgnored},
		"target is requested by its version, two images":    {version: clusterVersion{desired: to("4.4.6", ""), twice: true}, want: clusterstate.ObservedIgnored},

		// The target is requested, but the cluster version operator has not decided.
		"target is requested":                                    {version: clusterVersion{desired: to("4.4.6", "")}, want: clusterstate.ObservedPending},
		"target is requested, not observed":                      {version: clusterVersion{desired: to("4.4.6", ""), unobserved: true}, want: clusterstate.ObservedPending},
		"target is requested, not available, not observed":       {version: clusterVersion{desired: to("4.4.6", ""), unavailable: true, unobserved: true}, want: clusterstate.ObservedPending},
		"target is requested with the current image, unobserved": {version: clusterVersion{desired: to("4.4.6", image445), unobserved: true}, want: clusterstate.ObservedPending},
		"target is requested with its image":                     {version: clusterVersion{desired: to("4.4.6", image446), unavailable: true}, want: clusterstate.ObservedPending},
		"target is requested by its image alone": {
			version: clusterVersion{desired: to("", image446)}, target: clusterstate.Target{Version: "4.4.6", Image: image446}, want: clusterstate.ObservedPending,
		},
		"target is requested, an earlier release was refused": {version: clusterVersion{desired: to("4.4.6", ""), refused: refused447}, want: clusterstate.ObservedPending},
		"target is requested, another image was refused": {
			version: clusterVersion{desired: to("4.4.6", image446), refused: `failed version="4.4.6" image="` + image447 + `"`}, want: clusterstate.ObservedPending,
		},
		"target is requested, an unnamed release was refused before": {version: clusterVersion{desired: to("4.4.6", ""), refused: "not signed", unobserved: true}, want: clusterstate.ObservedPending},
		"target is requested during another update":                  {version: clusterVersion{history: partial("4.4.7", image447), desired: to("4.4.6", image446)}, want: clusterstate.ObservedPending},
		"target is requested during another update, not available": {
			version: clusterVersion{history: partial("4.4.7", image447), desired: to("4.4.6", ""), unavailable: true}, want: clusterstate.ObservedPending,
		},

		// The target is refused.
		"target is refused":                       {version: clusterVersion{desired: to("4.4.6", ""), refused: refused446}, want: clusterstate.ObservedRefused},
		"target is refused, status outdated":      {version: clusterVersion{desired: to("4.4.6", ""), refused: refused446, unobserved: true}, want: clusterstate.ObservedRefused},
		"target is refused during another update": {version: clusterVersion{history: partial("4.4.7", image447), desired: to("4.4.6", ""), refused: refused446}, want: clusterstate.ObservedRefused},
		"target is refused without its name":      {version: clusterVersion{desired: to("4.4.6", ""), refused: "not signed"}, want: clusterstate.ObservedRefused},

		// Another release takes precedence.
		"another release is being installed":                             {version: clusterVersion{history: partial("4.4.7", image447)}, want: clusterstate.ObservedOther},
		"another release is being installed and requested":               {version: clusterVersion{history: partial("4.4.7", image447), desired: to("4.4.7", "")}, want: clusterstate.ObservedOther},
		"another release is requested with its image":                    {version: clusterVersion{desired: to("4.4.7", image447)}, want: clusterstate.ObservedOther},
		"another release is requested, not observed":                     {version: clusterVersion{desired: to("4.4.7", ""), unobserved: true}, want: clusterstate.ObservedOther},
		"another release is requested, the target was refused":           {version: clusterVersion{desired: to("4.4.7", image447), refused: refused446}, want: clusterstate.ObservedOther},
		"a release is requested by its image alone":                      {version: clusterVersion{desired: to("", image447)}, want: clusterstate.ObservedOther},
		"another image of the target's version is requested":             {version: clusterVersion{desired: to("4.4.6", image447)}, target: clusterstate.Target{Version: "4.4.6", Image: image446}, want: clusterstate.ObservedOther},
		"another architecture is requested, not observed":                {version: clusterVersion{desired: multi("4.4.5"), unobserved: true}, want: clusterstate.ObservedOther},
		"another architecture of the target is requested":                {version: clusterVersion{desired: multi("4.4.6")}, want: clusterstate.ObservedOther},
		"the former release is requested by its image, may be installed": {version: clusterVersion{history: completed("4.4.7", image447), desired: to("4.4.5", image445)}, want: clusterstate.ObservedOther},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := tc.target
			if target.Version == "" {
				target.Version = "4.4.6"
			}
			if got := tc.version.facts().Observe(target); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// managed returns recorded field managers of spec.desiredUpdate.
func managed(owners map[string]string) []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for field, manager := range owners {
		raw := fmt.Sprintf(`{"f:spec":{"f:desiredUpdate":{".":{},"f:%s":{}}}}`, field)
		entries = append(entries, metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: &metav1.FieldsV1{Raw: []byte(raw)}})
	}
	return entries
}

func TestIsOwnRequest(t *testing.T) {
	t.Parallel()
	const own = clusterstate.FieldManager
	for name, tc := range map[string]struct {
		desired  *configv1.Update
		managers map[string]string // nil if none are recorded, as in the cache
		image    *string           // image of the request
		want     clusterstate.Answer
	}{
		"no request":                 {want: clusterstate.No},
		"written by the operator":    {desired: to("4.4.6", ""), managers: map[string]string{"version": own, "image": own, "force": own}, image: new(""), want: clusterstate.Yes},
		"written over a leftover":    {desired: to("4.4.6", ""), managers: map[string]string{"version": own, "image": "oc", "force": "oc"}, image: new(""), want: clusterstate.Yes},
		"only the image was changed": {desired: to("4.4.6", image446), managers: map[string]string{"version": "oc", "image": own}, image: new(image446), want: clusterstate.Yes},
		"written by the operator, image not known": {
			desired: to("4.4.6", image446), managers: map[string]string{"version": own, "image": own}, want: clusterstate.Yes,
		},
		"written over a leftover with the noted image": {
			desired: to("4.4.6", image446), managers: map[string]string{"version": own, "image": "oc"}, image: new(image446), want: clusterstate.Yes,
		},
		"written over a leftover, image not known": {desired: to("4.4.6", ""), managers: map[string]string{"version": own, "image": "oc"}, want: clusterstate.Yes},
		"another version":                          {desired: to("4.4.7", ""), managers: map[string]string{"version": own}, image: new(""), want: clusterstate.No},
		"forced since":                             {desired: forced(to("4.4.6", "")), managers: map[string]string{"version": own, "image": own, "force": "oc"}, image: new(""), want: clusterstate.No},
		"another image since":                      {desired: to("4.4.6", image447), managers: map[string]string{"version": own, "image": "oc"}, image: new(""), want: clusterstate.No},
		"another image since, ours not known":      {desired: to("4.4.6", image447), managers: map[string]string{"version": own, "image": "oc"}, want: clusterstate.No},
		"image removed since":                      {desired: to("4.4.6", ""), managers: map[string]string{"version": own, "image": "oc"}, image: new(image446), want: clusterstate.No},
		"written anew by another client":           {desired: to("4.4.6", ""), managers: map[string]string{"version": "oc", "image": "oc"}, image: new(""), want: clusterstate.No},
		"another image of the operator itself":     {desired: to("4.4.6", image447), managers: map[string]string{"version": own, "image": own}, image: new(image446), want: clusterstate.Yes},
		"no field managers":                        {desired: to("4.4.6", ""), image: new(""), want: clusterstate.Unknown},
		"no field managers, another image":         {desired: to("4.4.6", image447), image: new(""), want: clusterstate.No},
		"no field managers, forced":                {desired: forced(to("4.4.6", "")), want: clusterstate.No},
		"no field managers, image is not known":    {desired: to("4.4.6", image446), want: clusterstate.Unknown},
		"another architecture": {
			desired: &configv1.Update{Version: "4.4.6", Architecture: configv1.ClusterVersionArchitectureMulti}, want: clusterstate.No,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := clusterVersion{desired: tc.desired, managers: managed(tc.managers)}.object()
			version := clusterstate.VersionOf(object)
			if _, err := clusterstate.StripClusterVersion(object); err != nil {
				t.Fatal(err)
			}
			if got := clusterstate.VersionOf(object).IsOwnRequest("4.4.6", tc.image); got != tc.want {
				t.Errorf("from the cache, got %d, want %d", got, tc.want)
			}
			if got := version.IsOwnRequest("4.4.6", tc.image); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
			want := version.Observe(clusterstate.Target{Version: "4.4.6"})
			if tc.want == clusterstate.No && want != clusterstate.ObservedNone {
				want = clusterstate.ObservedOther
			}
			if got := version.ObserveOwn(clusterstate.Target{Version: "4.4.6"}, tc.image); got != want {
				t.Errorf("ObserveOwn: got %s, want %s", got, want)
			}
		})
	}
}

func TestDesiredUpdatePatches(t *testing.T) {
	t.Parallel()
	risks := func(update *configv1.Update, names ...string) *configv1.Update {
		for _, name := range names {
			update.AcceptRisks = append(update.AcceptRisks, configv1.AcceptRisk{Name: name})
		}
		return update
	}
	release := clusterstate.Release{Version: "4.4.6", Image: image446}
	for name, tc := range map[string]struct {
		desired   *configv1.Update
		release   clusterstate.Release
		risks     []string
		request   string
		withdrawn string
	}{
		"nothing requested": {
			release:   release,
			request:   `{"architecture":"","force":false,"image":"` + image446 + `","version":"4.4.6"}`,
			withdrawn: `null`,
		},
		"leftovers are replaced": {
			desired: &configv1.Update{Version: "4.4.5", Image: image445, Force: true, Mode: configv1.UpdateModePreflight, Architecture: "Multi"},
			release: clusterstate.Release{Version: "4.4.6"},
			request: `{"architecture":"","force":false,"image":"","mode":null,"version":"4.4.6"}`, withdrawn: `null`,
		},
		"accepted risks are kept": {
			desired: risks(to("4.4.6", ""), "SlowBoot"), release: release,
			request:   `{"architecture":"","force":false,"image":"` + image446 + `","version":"4.4.6"}`,
			withdrawn: `{"architecture":"","force":false,"image":"` + image445 + `","version":"4.4.5"}`,
		},
		"a preflight with accepted risks is withdrawn": {
			desired: risks(&configv1.Update{Version: "4.4.6", Mode: configv1.UpdateModePreflight}, "SlowBoot"), release: release,
			request:   `{"architecture":"","force":false,"image":"` + image446 + `","mode":null,"version":"4.4.6"}`,
			withdrawn: `{"architecture":"","force":false,"image":"` + image445 + `","mode":null,"version":"4.4.5"}`,
		},
		"risks that are accepted already are not added": {
			desired: risks(to("4.4.6", ""), "SlowBoot"), release: release, risks: []string{"SlowBoot"},
			request:   `{"architecture":"","force":false,"image":"` + image446 + `","version":"4.4.6"}`,
			withdrawn: `{"architecture":"","force":false,"image":"` + image445 + `","version":"4.4.5"}`,
		},
		"risks are added to the accepted ones": {
			desired: risks(to("4.4.6", ""), "SlowBoot"), release: release, risks: []string{"OldEtcd"},
			request:   `{"acceptRisks":[{"name":"SlowBoot"},{"name":"OldEtcd"}],"architecture":"","force":false,"image":"` + image446 + `","version":"4.4.6"}`,
			withdrawn: `{"architecture":"","force":false,"image":"` + image445 + `","version":"4.4.5"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}
			version.Spec.DesiredUpdate = tc.desired
			version.Status.History = []configv1.UpdateHistory{entry("4.4.5", image445, configv1.CompletedUpdate)}
			for what, check := range map[string]struct {
				patch client.Patch
				want  string
			}{
				"request":    {clusterstate.RequestPatch(version, tc.release, tc.risks...), tc.request},
				"withdrawal": {clusterstate.WithdrawalPatch(version), tc.withdrawn},
			} {
				got, err := check.patch.Data(version)
				if want := `{"metadata":{"resourceVersion":"7"},"spec":{"desiredUpdate":` + check.want + `}}`; err != nil || string(got) != want {
					t.Errorf("%s: %v\n got %s\nwant %s", what, err, got, want)
				}
			}
		})
	}
}
