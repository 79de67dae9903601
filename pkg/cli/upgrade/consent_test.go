// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// No command changes an upgrade that was not named, or without confirmation.
func TestActions_ask(t *testing.T) {
	t.Parallel()
	named := []string{"upgrade/cluster", "-n", clitest.Namespace}
	for verb, tc := range map[string]struct {
		records []history.Record
		changed string
	}{
		"pause": {nil, "paused"}, "resume": {nil, "unpaused"}, "cancel": {nil, "deleted"},
		"retry": {[]history.Record{clitest.FailedRecord()}, "retry 2026-11-23T01:00:00Z"}, "run-now": {nil, "run-now 2026-11-23T01:00:00Z"},
	} {
		for name, way := range map[string]struct {
			args    []string
			answer  string
			code    session.ExitCode
			changes bool
			says    string
		}{
			"without a terminal":           {named, "", session.ExitUsage, false, "nothing was changed: the standard input is not a terminal"},
			"answered no":                  {named, "n\n", session.ExitFailed, false, "nothing was changed, because you did not agree"},
			"answered nothing":             {named, "\n", session.ExitFailed, false, verb + " upgrade/cluster in namespace managed-upgrade-operator? [y/N] "},
			"answered yes":                 {named, "y\n", session.ExitDone, true, verb + " upgrade/cluster in namespace managed-upgrade-operator? [y/N] "},
			"with -y":                      {append([]string{"-y"}, named...), "", session.ExitDone, true, "upgrade/cluster "},
			"as a dry run":                 {append([]string{"--dry-run=server"}, named...), "", session.ExitDone, false, " (server dry run)\n"},
			"of an unknown kind":           {append([]string{"--dry-run=client"}, named...), "", session.ExitUsage, false, "must be none or server"},
			"without a name":               {[]string{"-y"}, "", session.ExitUsage, false, `"oc update ` + verb + ` upgrade/cluster -n managed-upgrade-operator"`},
			"on a terminal without a name": {nil, "y\n", session.ExitUsage, false, verb + " needs KIND/NAME: "},
		} {
			t.Run(verb+" "+name, func(t *testing.T) {
				t.Parallel()
				upgrade := clitest.AnUpgrade(tc.records...)
				if verb == "resume" {
					upgrade.Annotations = map[string]string{upgradev1alpha1.PauseAnnotation: "freeze"}
				}
				cluster := clitest.NewFakeCluster(t, upgrade)
				got := runOn(t, cluster, way.answer, append([]string{verb}, way.args...)...)
				if got.Code != way.code || !strings.Contains(got.Out+got.ErrOut, way.says) {
					t.Errorf("exit code %d, want %d and %q:\n%s%s", got.Code, way.code, way.says, got.Out, got.ErrOut)
				}
				want := ""
				if way.changes {
					want = tc.changed
				}
				if changed := changeOf(t, cluster, targetOf(upgrade)); changed != want {
					t.Errorf("it changed %q, want %q", changed, want)
				}
			})
		}
	}
}

// Without an argument, history shows the newest upgrade of any kind, namespace, and phase.
func TestHistory_of_the_newest_upgrade(t *testing.T) {
	t.Parallel()
	at := func(object client.Object, created time.Duration) client.Object {
		object.SetCreationTimestamp(metav1.NewTime(clitest.Now.Add(-created)))
		return object
	}
	earlier, elsewhere := at(clitest.AJob("earlier", clitest.FailedRecord()), 30*time.Hour), at(clitest.AJob("later", clitest.CommencedRecord()), 20*time.Hour)
	elsewhere.SetNamespace("shop")
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"the last that started":       {[]client.Object{earlier, elsewhere}, "upgradejob/later in namespace shop"},
		"one created since":           {[]client.Object{earlier, elsewhere, at(clitest.AnUpgrade(), time.Minute)}, "upgrade/cluster in namespace managed-upgrade-operator"},
		"one created before they ran": {[]client.Object{earlier, elsewhere, at(clitest.AnUpgrade(), 10*time.Hour)}, "upgradejob/later in namespace shop"},
		"one that has ended":          {[]client.Object{earlier}, "upgradejob/earlier in namespace managed-upgrade-operator"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runOn(t, clitest.NewFakeCluster(t, tc.objects...), "", "history")
			if first, _, _ := strings.Cut(got.Out, "\n"); got.Code != session.ExitDone || first != tc.want {
				t.Errorf("exit code %d, shows %q, want %q\n%s", got.Code, first, tc.want, got.ErrOut)
			}
		})
	}
}
