// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

func TestAcknowledge(t *testing.T) {
	t.Parallel()
	object := &updatev1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName}}
	object.Status.AfterUpdate = []updatev1beta1.RetainedInsight{{Insight: updatev1beta1.Insight{UUID: "abc"}}, {Insight: updatev1beta1.Insight{UUID: "def"}}}
	object.Status.Assessment = &updatev1beta1.Assessment{InstalledTime: new(metav1.NewTime(clitest.Now))}
	object.Annotations = map[string]string{updatev1beta1.AcknowledgedAnnotation: "earlier=2020-01-01T00:00:00Z,hidden=" + text.FormatTime(clitest.Now)}
	cluster := clitest.NewFakeCluster(t, object)
	streams := run(t, "acknowledge", "node/x")
	if streams.Code != session.ExitUsage || !strings.Contains(streams.ErrOut, "upgradejob/NAME") {
		t.Errorf("exit code %d, error %q", streams.Code, streams.ErrOut)
	}
	if got := run(t, "acknowledge", "insight/abc", "--replay", "."); got.Code != session.ExitUsage || !strings.Contains(got.ErrOut, "dump") {
		t.Errorf("exit code %d, error %q", got.Code, got.ErrOut)
	}
	p := session.New(session.Environment{Terminal: &screen.Terminal{}, Streams: genericiooptions.NewTestIOStreamsDiscard()})
	o := &acknowledgeOptions{Session: p, ChangeOptions: session.ChangeOptions{Yes: true}}
	if err := o.acknowledgeInsight(t.Context(), cluster.Cluster, "other"); err == nil || !strings.Contains(err.Error(), "does not need attention") {
		t.Errorf("acknowledging what needs no attention: %v", err)
	}
	if err := o.acknowledgeInsight(t.Context(), cluster.Cluster, "def"); err != nil {
		t.Fatal(err)
	}
	stored := &updatev1beta1.UpdateStatus{}
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, stored); err != nil {
		t.Fatal(err)
	}
	if got := stored.Annotations[updatev1beta1.AcknowledgedAnnotation]; got != strings.ReplaceAll("def=TIME,hidden=TIME", "TIME", text.FormatTime(clitest.Now)) {
		t.Errorf("annotation %q, want the new one, and the other one after the same update", got)
	}
}
