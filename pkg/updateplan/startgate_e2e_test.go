// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package updateplan_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	openshift "github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

var server = devtest.APIServer{Namespace: "managed-upgrade-operator"}

func TestMain(m *testing.M) {
	os.Exit(server.Main(context.Background(), m, install))
}

const (
	controller = "system:serviceaccount:managed-upgrade-operator:update-status-controller"
	operator   = "system:serviceaccount:managed-upgrade-operator:managed-upgrade-operator"
)

// install installs the start gate as users do, and creates users. ann starts updates, ben may also bypass
// pre-checks, cleo accepts risks, and dora changes plans.
func install(ctx context.Context) error {
	objects, err := manifests.Read(openshift.Files)
	if err == nil {
		err = manifests.Apply(ctx, server, objects)
	}
	if err != nil {
		return err
	}
	everything := "--verb=create,get,patch,update,delete,list"
	for _, args := range []string{
		"apply --kustomize ../../deploy/update-status/crds",
		"wait --for=condition=Established crd/updateplans.config.openshift.io crd/updatestatuses.config.openshift.io crd/clusterversions.config.openshift.io",
		"create clusterrole versions --resource=clusterversions.config.openshift.io " + everything,
		"create clusterrolebinding versions --clusterrole=versions --user=ann --user=ben --user=" + operator,
		"create clusterrole events --resource=events --verb=create",
		"create clusterrolebinding events --clusterrole=events --user=ben",
		"create clusterrole plans --resource=updateplans.config.openshift.io " + everything,
		"create clusterrolebinding plans --clusterrole=plans --user=ann --user=cleo --user=dora",
		"create clusterrole accept --resource=updateplans.config.openshift.io/risks --verb=accept",
		"create clusterrolebinding accept --clusterrole=accept --user=cleo",
		"create clusterrole evidence --resource=updatestatuses.config.openshift.io,updatestatuses.config.openshift.io/status,updateplans.config.openshift.io/status " + everything,
		"create clusterrolebinding evidence --clusterrole=evidence --user=ann --user=" + controller,
		"apply --kustomize ../../deploy/update-status/start-gate",
		"create clusterrolebinding bypass --clusterrole=update-bypasser --user=ben",
	} {
		if err := kubectl(ctx, "", strings.Fields(args)...); err != nil {
			return err
		}
	}
	// A policy takes effect a short time after its creation.
	plan := `{"apiVersion":"config.openshift.io/v1beta1","kind":"UpdatePlan","metadata":{"name":"update-plan-9.9.9"},` +
		`"spec":{"targetRelease":"9.9.9","acceptedInsights":[{"updateInformer":"a","uid":"b","uuid":"","accepted":true}]}}`
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := kubectl(ctx, plan, "create", "--dry-run=server", "-f", "-", "--as=dora")
		return err != nil && strings.Contains(err.Error(), "verb accept"), nil
	})
}

func kubectl(ctx context.Context, input string, args ...string) error {
	cmd := server.Kubectl(ctx, args...)
	cmd.Stdin = strings.NewReader(input)
	if printed, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, printed)
	}
	return nil
}

// TestStartGate requests updates of a cluster at 4.20.6 that may be updated to 4.20.8.
func TestStartGate(t *testing.T) {
	ctx := t.Context()
	must := func(args ...string) {
		t.Helper()
		if err := kubectl(ctx, "", args...); err != nil {
			t.Fatal(err)
		}
	}
	create := `{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","metadata":{"name":"version"},"spec":{"clusterID":"bc75be34-e92d-4745-bb9d-8ec39e877854"%s}}`
	if err := kubectl(ctx, fmt.Sprintf(create, `,"desiredUpdate":{"version":"4.20.8"}`), "create", "-f", "-", "--as=ann"); err == nil || !strings.Contains(err.Error(), "may not be started") {
		t.Errorf("a ClusterVersion is created with an update: %v", err)
	}
	if err := kubectl(ctx, fmt.Sprintf(create, ""), "create", "-f", "-", "--as=ann"); err != nil {
		t.Fatal(err)
	}
	digest := "@sha256:" + strings.Repeat("1", 64)
	must("patch", "clusterversion", "version", "--subresource=status", "--type=merge", "-p", `{"status":{"desired":{"version":"4.20.6","image":"a"},"observedGeneration":1,"versionHash":"x",`+
		`"history":[{"state":"Completed","version":"4.20.6","image":"a","startedTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T01:00:00Z","verified":true}],`+
		`"availableUpdates":[{"version":"4.20.8","image":"quay.io/a`+digest+`"},{"version":"4.20.9","image":"b"}]}}`)
	startable := func(release, from string) {
		t.Helper()
		must("patch", "updatestatus", "cluster", "--subresource=status", "--type=merge", "--as="+controller, "-p",
			`{"status":{"startableReleases":[{"version":"`+release+`","fromRelease":"`+from+`","expirationTime":"2036-01-01T00:00:00Z"}]}}`)
	}
	request := func(user, patch string) error {
		t.Helper()
		return kubectl(ctx, "", "patch", "clusterversion", "version", "--type=merge", "--dry-run=server", "--as="+user, "-p", patch)
	}
	startable("4.20.8", "4.20.6")
	annotation := func(value string) string {
		return `{"metadata":{"annotations":{"upgrade.managed.openshift.io/pre-checks-bypassed":"` + value + `"}},"spec":{"desiredUpdate":{"version":"4.20.9"}}}`
	}
	for name, tc := range map[string]struct{ user, patch, refused string }{
		"startable":               {"ann", `{"spec":{"desiredUpdate":{"version":"4.20.8"}}}`, ""},
		"startable with image":    {"ann", `{"spec":{"desiredUpdate":{"version":"4.20.8","image":"mirror/a` + digest + `"}}}`, ""},
		"with another image":      {"ann", `{"spec":{"desiredUpdate":{"version":"4.20.8","image":"mirror/evil"}}}`, "no other image"},
		"with force":              {"ann", `{"spec":{"desiredUpdate":{"version":"4.20.8","force":true}}}`, "no force"},
		"with architecture":       {"ann", `{"spec":{"desiredUpdate":{"version":"4.20.8","architecture":"Multi"}}}`, "no architecture"},
		"not startable":           {"ann", `{"spec":{"desiredUpdate":{"version":"4.20.9"}}}`, "oc update pre-checks --version 4.20.9"},
		"by image alone":          {"ann", `{"spec":{"desiredUpdate":{"image":"a` + digest + `"}}}`, "may not be started"},
		"annotation without verb": {"ann", annotation("4.20.9"), "may not be started"},
		"bypass":                  {"ben", annotation("4.20.9"), ""},
		"verb without annotation": {"ben", `{"spec":{"desiredUpdate":{"version":"4.20.9"}}}`, "may not be started"},
		"annotation of another":   {"ben", annotation("4.20.8"), "may not be started"},
		"operator":                {operator, `{"spec":{"desiredUpdate":{"version":"4.20.9"}}}`, ""},
		"another field":           {"ann", `{"spec":{"channel":"fast-4.20"}}`, ""},
		"cleared":                 {"ann", `{"spec":{"desiredUpdate":null}}`, ""},
	} {
		err := request(tc.user, tc.patch)
		if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("%s: %v, want %q", name, err, tc.refused)
		}
	}
	t.Run("kubectl-update", checkStart)
	must("patch", "clusterversion", "version", "--type=merge", "--as=ann", "-p", `{"spec":{"desiredUpdate":{"version":"4.20.8"}}}`)
	startable("4.20.8", "4.20.5")
	for name, tc := range map[string]struct{ patch, refused string }{
		"unchanged":                  {`{"spec":{"channel":"fast-4.20","desiredUpdate":{"version":"4.20.8"}}}`, ""},
		"cleared":                    {`{"spec":{"desiredUpdate":null}}`, ""},
		"force of the same update":   {`{"spec":{"desiredUpdate":{"version":"4.20.8","force":true}}}`, "may not be started"},
		"startable from another one": {`{"spec":{"desiredUpdate":{"version":"4.20.8","image":"a` + digest + `"}}}`, "may not be started"},
	} {
		if err := request("ann", tc.patch); (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("%s: %v, want %q", name, err, tc.refused)
		}
	}
	forged := `{"status":{"startableReleases":[{"version":"4.20.9","fromRelease":"4.20.6","expirationTime":"2036-01-01T00:00:00Z"}]}}`
	if err := kubectl(ctx, "", "patch", "updatestatus", "cluster", "--subresource=status", "--type=merge", "--as=ann", "-p", forged); err == nil {
		t.Error("a user forges a startable release")
	}
	if err := kubectl(ctx, "", "delete", "updatestatus", "cluster", "--as=ann"); err == nil {
		t.Error("a user deletes the UpdateStatus")
	}
	must("delete", "updatestatus", "cluster", "--as="+controller)
	deadline := time.Now().Add(time.Minute)
	err := request("ann", `{"spec":{"desiredUpdate":{"version":"4.20.9"}}}`)
	for err == nil && time.Now().Before(deadline) {
		err = request("ann", `{"spec":{"desiredUpdate":{"version":"4.20.9"}}}`)
	}
	if err == nil {
		t.Error("an update is started without the UpdateStatus")
	}
}

// checkStart starts updates with kubectl-update and clears each request.
func checkStart(t *testing.T) {
	startable := func(release, status string) {
		t.Helper()
		plan := `{"apiVersion":"config.openshift.io/v1beta1","kind":"UpdatePlan","metadata":{"name":"update-plan-` + release + `"},"spec":{"targetRelease":"` + release + `"}}`
		if err := kubectl(t.Context(), plan, "create", "-f", "-", "--as=ann"); err != nil {
			t.Fatal(err)
		}
		now := time.Now().UTC().Format(time.RFC3339)
		condition := func(name, value string) string {
			return `{"type":"` + name + `","status":"` + value + `","observedGeneration":1,"reason":"Test","message":"risks are not accepted","lastTransitionTime":"` + now + `"}`
		}
		err := kubectl(t.Context(), "", "patch", "updateplan", "update-plan-"+release, "--subresource=status", "--type=merge", "--as="+controller, "-p",
			`{"status":{"controlPlane":{"updateInformers":[{"name":"queue","insights":[`+risk(now)+`]}]},`+
				`"fromRelease":"4.20.6","lastAnalysisTime":"`+now+`","observedGeneration":1,"conditions":[`+condition("Complete", "True")+","+condition("Startable", status)+`]}}`)
		if err != nil {
			t.Fatal(err)
		}
	}
	startable("4.20.8", "True")
	startable("4.20.9", "False")
	for _, tc := range []struct {
		name, user, args string
		code             int
		prints           string
		requests         string // release and annotation
	}{
		{"risks are not accepted", "ann", "start -y --to 4.20.9", 30, "not started: risks are not accepted", " "},
		{"risks are accepted", "ann", "start -y --to 4.20.8", 0, "Requested the update from 4.20.6 to 4.20.8", "4.20.8 "},
		{"bypass without the verb", "ann", "start -y --to 4.20.9 --pre-checks=false", 30, "ClusterRole update-bypasser", " "},
		{"bypass of the control plane without the verb", "ann", "control-plane start -y --to 4.20.9 --pre-checks=false", 30, "ClusterRole update-bypasser", " "},
		{"bypass", "ben", "start -y --to 4.20.9 --pre-checks=false", 0, "Requested the update from 4.20.6 to 4.20.9", "4.20.9 4.20.9"},
		{"no right to update", "dora", "start -y --to 4.20.8", 1, "ask an administrator for", " "},
		{"acceptance without the verb", "dora", "pre-checks --version 4.20.9 -y --accept long", 1, "ask an administrator for the ClusterRole update-approver", " "},
		{"acceptance of what is not there", "cleo", "pre-checks --version 4.20.9 -y --accept short", 1, `no risk has the uid or uuid "short"`, " "},
	} {
		cmd := server.KubectlUpdate(t.Context(), append(strings.Fields(tc.args), "--as="+tc.user)...)
		printed, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(string(printed), tc.prints) || strings.Count(string(printed), "\n") != 1 {
			t.Errorf("%s: exit code %d, want %d; printed %q, want %q", tc.name, code, tc.code, printed, tc.prints)
		}
		requested, err := server.Kubectl(t.Context(), "get", "clusterversion", "version", "-o",
			`jsonpath={.spec.desiredUpdate.version} {.metadata.annotations.upgrade\.managed\.openshift\.io/pre-checks-bypassed}`).Output()
		if err != nil || string(requested) != tc.requests {
			t.Errorf("%s: requested %q, %v, want %q", tc.name, requested, err, tc.requests)
		}
		if err := kubectl(t.Context(), "", "patch", "clusterversion", "version", "--type=merge", "-p",
			`{"metadata":{"annotations":{"upgrade.managed.openshift.io/pre-checks-bypassed":null}},"spec":{"desiredUpdate":null}}`); err != nil {
			t.Fatal(err)
		}
	}
	events, err := server.Kubectl(t.Context(), "get", "events", "--namespace=default", "-o", `jsonpath={.items[?(@.reason=="PreChecksBypassed")].message}`).Output()
	if err != nil || string(events) != "ben started the update to 4.20.9 without pre-checks" {
		t.Errorf("events %q, %v", events, err)
	}
}

// risk returns a plan's insight that must be accepted.
func risk(at string) string {
	return `{"uid":"long","uuid":"` + strings.Repeat("a", 32) + `","acquisitionTime":"` + at + `","firstObservedTime":"` + at + `",` +
		`"scope":{"type":"ControlPlane"},"impact":{"level":"warning","type":"Unknown","summary":"the queue is long"}}`
}

func TestAcceptancePolicy(t *testing.T) {
	plan := func(name, entries string) string {
		return `{"apiVersion":"config.openshift.io/v1beta1","kind":"UpdatePlan","metadata":{"name":"update-plan-` + name + `"},"spec":{"targetRelease":"` + name + `","acceptedInsights":[` + entries + `]}}`
	}
	entry := func(uid, by, accepted string) string {
		return `{"updateInformer":"a","uid":"` + uid + `","uuid":"","accepted":` + accepted + `,"acceptedBy":"` + by + `"}`
	}
	if err := kubectl(t.Context(), plan("4.20.1", entry("x", "cleo", "true")), "create", "-f", "-", "--as=cleo"); err != nil {
		t.Fatal(err)
	}
	patch := func(user, entries string) error {
		return kubectl(t.Context(), "", "patch", "updateplan", "update-plan-4.20.1", "--type=merge", "--dry-run=server", "--as="+user, "-p", `{"spec":{"acceptedInsights":[`+entries+`]}}`)
	}
	mine := entry("x", "cleo", "true")
	current, err := server.Kubectl(t.Context(), "get", "updateplan", "update-plan-4.20.1", "-o", "jsonpath={.metadata.resourceVersion}").Output()
	if err != nil {
		t.Fatal(err)
	}
	review := func(version, entries string) error {
		return kubectl(t.Context(), "", "patch", "updateplan", "update-plan-4.20.1", "--type=merge", "--dry-run=server", "--as=cleo", "-p",
			`{"spec":{"updatePlanResourceVersion":"`+version+`","acceptedInsights":[`+entries+`]}}`)
	}
	for name, tc := range map[string]struct {
		err     error
		refused string
	}{
		"created by a planner":             {kubectl(t.Context(), plan("4.20.2", entry("x", "dora", "true")), "create", "-f", "-", "--as=dora"), "verb accept"},
		"created without acceptances":      {kubectl(t.Context(), plan("4.20.3", ""), "create", "-f", "-", "--as=dora"), ""},
		"added by a planner":               {patch("dora", mine+","+entry("y", "dora", "true")), "verb accept"},
		"added by an approver":             {patch("cleo", mine+","+entry("y", "cleo", "true")), ""},
		"added under another name":         {patch("cleo", mine+","+entry("y", "ann", "true")), "must be cleo"},
		"unchanged by a planner":           {patch("dora", mine), ""},
		"withdrawn by a planner":           {patch("dora", entry("x", "cleo", "false")), ""},
		"removed by a planner":             {patch("dora", ""), ""},
		"changed by a planner":             {patch("dora", `{"updateInformer":"a","uid":"x","uuid":"","accepted":true,"acceptedBy":"cleo","reason":"r"}`), "verb accept"},
		"added to the version reviewed":    {review(string(current), mine+","+entry("y", "cleo", "true")), ""},
		"added to a former version":        {review("1", mine+","+entry("y", "cleo", "true")), "changed since version 1 was reviewed"},
		"another version is reviewed":      {review("1", mine), ""},
		"not accepted, added by a planner": {patch("dora", mine+","+entry("y", "dora", "false")), ""},
	} {
		if (tc.err == nil) != (tc.refused == "") || tc.err != nil && !strings.Contains(tc.err.Error(), tc.refused) {
			t.Errorf("%s: %v, want %q", name, tc.err, tc.refused)
		}
	}
}
