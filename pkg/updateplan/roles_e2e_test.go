// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package updateplan_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	ocmcrds "github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

// users maps users to the roles that they are named after. Roles that only grant writing are combined with
// the corresponding reader role, as the roles view and edit contain both. Users who can read fleets can also
// read the kinds of the hub.
var users = map[string][]string{
	"stranger":               {},
	"update-viewer":          {"update-viewer"},
	"update-planner":         {"update-planner"},
	"update-approver":        {"update-approver"},
	"update-bypasser":        {"update-bypasser"},
	"managed-upgrade-viewer": {"managed-upgrade-viewer"},
	"managed-upgrade-editor": {"managed-upgrade-viewer", "managed-upgrade-editor"},
	"fleet-viewer":           {"fleet-viewer", "hub-reader"},
	"fleet-editor":           {"fleet-editor", "hub-reader"},
	administrator:            {"cluster-admin"},
}

const (
	administrator = "administrator"
	// everybody can run commands whose requests need no role.
	everybody = "everybody"

	viewers   = "update-viewer update-planner update-approver"
	readers   = viewers + " " + upgraders // of the ClusterVersion
	planners  = "update-planner update-approver"
	upgraders = "managed-upgrade-viewer managed-upgrade-editor"
	fleets    = "fleet-viewer fleet-editor"
)

// roleCase lists the users who may run a command, not counting the administrator.
type roleCase struct {
	args, users string
	// code and prints are the expected exit code and part of the output for those users.
	code   session.ExitCode
	prints string
}

// roleCases has at least one row for each command in the reference.
var roleCases = []roleCase{
	{"status", viewers, 0, "UP TO DATE"},
	{"status --details", viewers, 0, "Sources"},
	{"status pre-checks --version 4.20.7 --wait=1s", viewers, 30, "NOT READY"},
	{"pre-checks --version 4.20.7 --wait=1s", viewers, 30, "NOT READY"},
	{"pre-checks --version 4.20.7 --wait=1s --refresh-informers", planners, 30, "NOT READY"},
	{"pre-checks --version 4.20.7 --wait=1s --accept long -y --dry-run=server", "update-approver", 30, "would accept the change"},
	{"pre-checks --version 4.20.7 --wait=1s --accept -y --dry-run=server", "update-approver", 30, "would accept the change"},
	{"start -y --to 4.20.8 --wait=1s --dry-run=server", "", 0, "Would request the update"},
	{"start -y --to 4.20.8 --pre-checks=false --dry-run=server", "", 0, "Would request the update"},
	{"control-plane", everybody, 0, "oc update control-plane"},
	{"control-plane start -y --to 4.20.8 --wait=1s --dry-run=server", "", 0, "Would request the update"},
	{"worker-nodes", everybody, 0, "oc update worker-nodes"},
	{"worker-nodes start -y --dry-run=server", "", 0, "No machine config pool of worker nodes is paused"},
	{"releases", readers, 0, "4.20.8"},
	{"clear -y --dry-run=server", readers, 0, "No update is requested"},
	{"channel", readers, 0, "Channel: stable-4.20"},
	{"channel fast-4.20 -y --dry-run=server", "", 0, "was selected"},
	{"informers", viewers, 0, "queue"},
	{"acknowledge -y insight/" + retained + " --dry-run=server", planners, 0, "acknowledged"},
	{"acknowledge -y upgradejob/job --dry-run=server", "managed-upgrade-editor", 0, "acknowledged"},
	{"schedule --to 4.20.8 --at +2h -y --dry-run=server", "managed-upgrade-editor", 0, "4.20.8"},
	{"preview upgrade/open", upgraders, 0, "Steps"},
	{"history upgrade/failed", upgraders, 0, "4.20.8"},
	{"watch upgrade/failed", upgraders, 30, "Failed"},
	{"report - upgrade/failed", upgraders, 0, "<html"},
	{"pause -y upgrade/open --dry-run=server", "managed-upgrade-editor", 0, "upgrade/open "},
	{"resume -y upgrade/open --dry-run=server", "managed-upgrade-editor", 0, "upgrade/open"},
	{"cancel -y upgrade/open --dry-run=server", "managed-upgrade-editor", 0, "upgrade/open "},
	{"retry -y upgrade/failed --dry-run=server", "managed-upgrade-editor", 0, "upgrade/failed "},
	{"run-now -y upgrade/open --dry-run=server", "managed-upgrade-editor", 0, "upgrade/open "},
	{"fleet", everybody, 0, "oc update fleet"},
	{"fleet status stores", fleets, 10, "stores"},
	{"fleet clusters stores", fleets, 0, "No clusters found"},
	{"fleet report stores -", fleets, 0, "<html"},
	{"fleet plan stores", fleets, 30, "stores"},
	{"fleet create other --to 4.20.8 --cluster-set a -y --dry-run=server", "fleet-editor", 0, "other"},
	{"fleet start stores -y --dry-run=server", "fleet-editor", 0, "stores"},
	{"fleet pause stores -y --dry-run=server", "fleet-editor", 0, "stores"},
	{"fleet resume stores -y --dry-run=server", fleets, 0, "stores"},
	{"fleet cancel stores -y --dry-run=server", "fleet-editor", 0, "stores"},
	{"fleet retry stores -y --dry-run=server", "fleet-editor", 0, "stores"},
	{"migrate-config", "", 1, "not found"},
	{"migrate-maintenance -f ../../deploy/samples/scheduled-maintenance", everybody, 0, "kind:"},
	{"migrate-maintenance -A", upgraders, 0, "kind:"},
	{"conformance --url https://127.0.0.1:1", everybody, 1, "127.0.0.1:1"},
	{"version", everybody, 0, "v0"},
}

// retained is the UUID of an insight that needs attention after the latest update.
var retained = strings.Repeat("b", 32)

var namedRole = regexp.MustCompile(`the ClusterRole ([a-z-]+)`)

// TestRoles runs each command as a user of each role. Users who may run it get the answer. All others are
// refused with a single line that names a role. With that role, a user gets further, until the command works
// or needs a permission that none of our roles grants.
func TestRoles(t *testing.T) { //nolint:tparallel // other tests change the same cluster
	installRoles(t)
	page, err := os.ReadFile("../../docs/reference/kubectl-update.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| \\[`oc update ([a-z -]+)`\\]").FindAllStringSubmatch(string(page), -1) {
		if !slices.ContainsFunc(roleCases, func(c roleCase) bool { return c.args == row[1] || strings.HasPrefix(c.args, row[1]+" ") }) {
			t.Errorf("no role is tested with the command %q", row[1])
		}
	}
	for _, c := range roleCases {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			next := map[string]string{} // the role that a refused user needs next
			for user := range users {
				code, printed := runAs(t, user, c.args)
				allowed := user == administrator || c.users == everybody || slices.Contains(strings.Fields(c.users), user)
				switch {
				case allowed && (code != c.code || !strings.Contains(printed, c.prints) || isRefused(printed)):
					t.Errorf("%s: exit code %d, want %d; printed %.500q, want %q", user, code, c.code, printed, c.prints)
				case !allowed && (code == 0 || !isRefused(printed)):
					t.Errorf("%s: exit code %d; printed %.500q, want a refusal", user, code, printed)
				case !allowed:
					next[user] = ""
					if named := namedRole.FindStringSubmatch(printed); named != nil {
						next[user] = named[1]
					}
				}
			}
			for user := range next {
				role, steps := user, 0
				for ; next[role] != "" && steps < len(users); steps++ {
					role = next[role]
				}
				if _, refused := next[role]; refused && (c.users != "" || steps == len(users)) {
					t.Errorf("%s is refused, follows what is printed, and ends as %s", user, role)
				}
			}
		})
	}
}

// isRefused reports whether a command printed that its user lacks a permission.
func isRefused(printed string) bool {
	return strings.Contains(strings.ToLower(printed), "ask an administrator for")
}

// runAs runs a command as a user.
func runAs(t *testing.T, user, args string) (session.ExitCode, string) {
	t.Helper()
	var printed bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	flags := []string{"--kubeconfig", server.Kubeconfig(), "--cache-dir", filepath.Join(filepath.Dir(server.Kubeconfig()), "cache"), "--namespace", server.Namespace, "--as", user}
	if user == administrator {
		flags = append(flags, "--as-group", "system:masters")
	}
	code := cli.Run(ctx, session.Environment{
		Program: "/oc-update", Version: "v0", Args: append(flags, strings.Fields(args)...), NoColor: true, Clock: clock.RealClock{},
		Terminal: &screen.Terminal{}, Streams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &printed, ErrOut: &printed},
	})
	return code, printed.String()
}

// installRoles creates the CRDs of all programs, the users, and the objects that the commands use. The
// cluster is at 4.20.6. The update to 4.20.7 has a risk, and the update to 4.20.8 may be started. Everything
// is removed after the test.
func installRoles(t *testing.T) {
	t.Helper()
	run := func(input string, args ...string) {
		t.Helper()
		if err := kubectl(t.Context(), input, args...); err != nil {
			t.Fatal(err)
		}
	}
	hub, err := fs.Sub(ocmcrds.Files, "hub")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.Read(hub)
	if err == nil {
		err = manifests.Apply(t.Context(), server, objects)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"crds", "hub/crds"} {
		run("", "apply", "--kustomize", filepath.Join("../../deploy", folder))
	}
	run("", "wait", "--for=condition=Established", "crd", "--all", "--timeout=1m")
	for _, file := range []string{"operator", "hub", "update-status"} {
		run("", "apply", "-f", filepath.Join("../../deploy", file, "roles.yaml"))
	}
	run("", "create", "clusterrole", "hub-reader", "--verb=get,list", "--resource="+
		"managedclusters.cluster.open-cluster-management.io,placements.cluster.open-cluster-management.io,placementdecisions.cluster.open-cluster-management.io")
	bindings := []string{"delete", "clusterrolebinding"}
	var bound strings.Builder
	for user, roles := range users {
		for _, role := range roles {
			bindings = append(bindings, user+"-"+role)
			fmt.Fprintf(&bound, "---\n"+`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"%s-%s"},`+
				`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"%s"}],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"%s"}}`+"\n", user, role, user, role)
		}
	}
	run(bound.String(), "create", "-f", "-")
	undo := [][]string{
		bindings, strings.Fields("delete updateplan update-plan-4.20.7 update-plan-4.20.8"), strings.Fields("delete clusterversions.config.openshift.io version"),
		{"patch", "updatestatus", "cluster", "--subresource=status", "--type=merge", "--as=" + controller, "-p", `{"status":{"assessment":null,"observedTime":null,"afterUpdate":null,"startableReleases":null}}`},
	}
	t.Cleanup(func() {
		for _, args := range undo {
			if err := kubectl(context.WithoutCancel(t.Context()), "", args...); err != nil {
				t.Error(err)
			}
		}
	})
	createCluster(run)
	createUpgrades(run)
}

// createCluster creates the objects that the Update Status Controller publishes.
func createCluster(run func(input string, args ...string)) {
	now := time.Now().UTC()
	at := now.Format(time.RFC3339)
	run(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"update-status-controller-leader","namespace":"managed-upgrade-operator"},`+
		`"spec":{"leaseDurationSeconds":3600,"renewTime":"`+now.Format("2006-01-02T15:04:05.000000Z07:00")+`"}}`, "apply", "-f", "-")
	run(`{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","metadata":{"name":"version"},"spec":{"clusterID":"bc75be34-e92d-4745-bb9d-8ec39e877854","channel":"stable-4.20"}}`, "create", "-f", "-")
	run("", "patch", "clusterversions.config.openshift.io", "version", "--subresource=status", "--type=merge", "-p", `{"status":{"desired":{"version":"4.20.6","image":"a"},"observedGeneration":1,"versionHash":"x",`+
		`"history":[{"state":"Completed","version":"4.20.6","image":"a","startedTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T01:00:00Z","verified":true}],`+
		`"availableUpdates":[{"version":"4.20.7","image":"b"},{"version":"4.20.8","image":"c"}],`+
		`"conditions":[{"type":"RetrievedUpdates","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	run(`{"apiVersion":"config.openshift.io/v1beta1","kind":"UpdateInformer","metadata":{"name":"queue"},"spec":{"clientConfig":{"service":{"name":"queue","namespace":"default"}}}}`, "apply", "-f", "-")
	run("", "patch", "updatestatus", "cluster", "--subresource=status", "--type=merge", "--as="+controller, "-p",
		`{"status":{"observedTime":"`+at+`","assessment":{"state":"Idle","since":"`+at+`","actionRequired":false,"release":"4.20.6"},`+
			`"startableReleases":[{"version":"4.20.8","fromRelease":"4.20.6","expirationTime":"2036-01-01T00:00:00Z"}],`+
			`"afterUpdate":[{"updateInformer":"queue","retainedSince":"`+at+`","insight":`+strings.Replace(risk(at), strings.Repeat("a", 32), retained, 1)+`}]}}`)
	condition := func(name, value string) string {
		return `{"type":"` + name + `","status":"` + value + `","observedGeneration":1,"reason":"Test","message":"risks are not accepted","lastTransitionTime":"` + at + `"}`
	}
	for release, startable := range map[string]string{"4.20.7": "False", "4.20.8": "True"} {
		insights := ""
		if startable == "False" {
			insights = risk(at)
		}
		run(`{"apiVersion":"config.openshift.io/v1beta1","kind":"UpdatePlan","metadata":{"name":"update-plan-`+release+`"},"spec":{"targetRelease":"`+release+`"}}`, "create", "-f", "-")
		run("", "patch", "updateplan", "update-plan-"+release, "--subresource=status", "--type=merge", "--as="+controller, "-p",
			`{"status":{"controlPlane":{"updateInformers":[{"name":"queue","insights":[`+insights+`]}]},`+
				`"fromRelease":"4.20.6","lastAnalysisTime":"`+at+`","observedGeneration":1000,"conditions":[`+condition("Complete", "True")+","+condition("Startable", startable)+`]}}`)
	}
}

// createUpgrades creates upgrades of the cluster and of a fleet.
func createUpgrades(run func(input string, args ...string)) {
	for name, at := range map[string]string{"open": "2036-01-01T00:00:00Z", "failed": "2026-01-01T00:00:00Z"} {
		run(`{"apiVersion":"upgrade.managed.openshift.io/v1alpha1","kind":"UpgradeConfig","metadata":{"name":"`+name+`"},"spec":{"type":"OSD","upgradeAt":"`+at+`",`+
			`"PDBForceDrainTimeout":60,"desired":{"version":"4.20.8","channel":"stable-4.20"}}}`, "create", "-f", "-")
	}
	run("", "patch", "upgradeconfigs.upgrade.managed.openshift.io", "failed", "--subresource=status", "--type=merge", "-p",
		`{"status":{"history":[{"version":"4.20.8","phase":"Failed","startTime":"2026-01-01T00:00:00Z","completeTime":"2026-01-01T01:00:00Z"}]}}`)
	run(`{"apiVersion":"managedupgrade.appuio.io/v1beta1","kind":"UpgradeJob","metadata":{"name":"job"},"spec":{"startAfter":"2036-01-01T00:00:00Z","startBefore":"2036-01-01T01:00:00Z",`+
		`"desiredVersion":{"version":"4.20.8","image":"quay.io/a@sha256:`+strings.Repeat("1", 64)+`"}}}`, "create", "-f", "-")
	run(`{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"ManagedClustersUpgrade","metadata":{"name":"stores"},"spec":{"dryRun":true,`+
		`"placement":[{"name":"stores","namespace":"default"}],"clusterVersion":{"channel":"stable-4.20","version":"4.20.8"}}}`, "create", "-f", "-")
	run("", "patch", "managedclustersupgrade", "stores", "--subresource=status", "--type=merge", "-p", `{"status":{"observedGeneration":1,"attempt":1,"clustersSummery":{"total":1,"pending":0,"initialized":0,"partialUpgrade":0,"complete":0,"failed":1}}}`)
}
