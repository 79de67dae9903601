// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/assessment"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

// camelCase matches words that look like a reason.
var camelCase = regexp.MustCompile(`^([A-Z][a-z]+){2,}$`)

// planReason matches words that look like a reason of a plan, including ones with an abbreviation.
var planReason = regexp.MustCompile(`^(PDB|[A-Z][a-z]+)s?([A-Z][a-z]+|API)+$|^(Current|Unreadable)$`)

// noPlanReason lists the words in the checks of plans that look like a reason but are not.
var noPlanReason = []string{
	"APIRequestCount", "AcceptanceStale", "AlertPending", "ClusterOperator", "ClusterServiceVersion", "ConfigMap", "ExclusionUnused",
	"MachineConfigPool", "ManagedUpgrade", "PodDisruptionBudget",
}

// noReason lists the words in the built-in informers that look like a reason but are not.
var noReason = []string{
	"ClusterOperator", "ClusterOperators", "ClusterVersion", "MachineConfigPool", "PodDisruptionBudget", "PreCheck", "ReleaseAccepted",
}

// TestReasons_of_informers_are_in_the_table checks that each reason that a built-in informer can set has a
// remedy or diagnostic or is listed as needing none.
func TestReasons_of_informers_are_in_the_table(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, r := range assessment.Rows() {
		if known[r.Reason] {
			t.Errorf("%s is in the table twice", r.Reason)
		}
		known[r.Reason] = true
	}
	found := map[string]bool{}
	for _, name := range []string{"update_alerts", "update_controlplane", "update_nodes", "update_upgrades", "pools"} {
		for _, word := range stringsIn(t, filepath.Join("..", "checks", name+".go")) {
			if camelCase.MatchString(word) && !slices.Contains(noReason, word) {
				found[word] = true
			}
		}
	}
	if len(found) < 30 {
		t.Errorf("only %d reasons in the source of the informers: is it read?", len(found))
	}
	for reason := range found {
		if !known[reason] {
			t.Errorf("an informer sets %s, which has no line in the table of reasons", reason)
		}
	}
	for _, reason := range []string{
		updatev1beta1.ReasonInformerDegraded, updatev1beta1.ReasonInformerUnreachable, updatev1beta1.ReasonInformerWaiting, updatev1beta1.ReasonInformerFailed,
		updatev1beta1.ReasonInformerInvalid, updatev1beta1.ReasonInformerDisabled, updatev1beta1.ReasonScopeMutated, updatev1beta1.ReasonUnstableIdentifiers, updatev1beta1.ReasonTruncated,
	} {
		if !known[reason] {
			t.Errorf("the Update Status Controller sets %s, which has no line in the table of reasons", reason)
		}
	}
}

// stringsIn returns the string literals of a Go file.
func stringsIn(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
			if word, err := strconv.Unquote(literal.Value); err == nil {
				words = append(words, word)
			}
		}
		return true
	})
	return words
}

// TestRows_are_complete checks the required fields of each row.
func TestRows_are_complete(t *testing.T) {
	t.Parallel()
	for _, r := range assessment.Rows() {
		switch {
		case r.One == "" || r.Text == "":
			t.Errorf("%s has no clause or no text", r.Reason)
		case strings.Contains(r.One, "{names}") != (r.Many != "" && strings.Contains(r.Many, "{names}")):
			t.Errorf("%s names objects in one clause only", r.Reason)
		case (r.Command != "") != strings.HasSuffix(r.Text, ":"):
			t.Errorf("%s: the text %q must end with a colon if a command follows, and only then", r.Reason, r.Text)
		case r.Kind == updatev1beta1.RemedyNone && r.Command != "", r.Kind != updatev1beta1.RemedyNone && !strings.HasPrefix(r.Command, "oc "):
			t.Errorf("%s has the command %q", r.Reason, r.Command)
		}
		if rest := regexp.MustCompile(`\{(names|count|object|namespace|resource)\}`).ReplaceAllString(r.One+r.Many+r.Command, ""); regexp.MustCompile(`\{[a-z]+\}`).MatchString(rest) {
			t.Errorf("%s has an unknown placeholder: %s", r.Reason, rest)
		}
	}
}

const troubleshooting = "../../docs/concepts/update-troubleshooting.md"

// TestTroubleshooting_lists_every_reason compares the documentation page with the table.
func TestTroubleshooting_lists_every_reason(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(troubleshooting)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- begin reasons -->\n", "<!-- end reasons -->\n"
	head, rest, found := strings.Cut(string(page), begin)
	got, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no lines %q and %q", troubleshooting, begin, end)
	}
	want := reasonTable()
	if *golden.Update {
		if err := os.WriteFile(troubleshooting, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs from the reasons in the code; renew it with hack/update-texts.sh (-want +got):\n%s", troubleshooting, diff)
	}
}

func reasonTable() string {
	replace := strings.NewReplacer("{names}", "NAME", "{count}", "N", "{object}", "NAME", "{namespace}", "NAMESPACE", "{resource}", "KIND", "|", `\|`)
	var b strings.Builder
	b.WriteString("\n| reason | what it means | what to do |\n| --- | --- | --- |\n")
	for _, r := range assessment.Rows() {
		todo := replace.Replace(r.Text)
		if r.Command != "" {
			todo += " `" + replace.Replace(r.Command) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Reason, replace.Replace(r.One), todo)
	}
	b.WriteString("\n")
	return b.String()
}

// TestTroubleshooting_lists_every_reason_of_plans checks that the documentation page lists exactly the
// reasons used by the pre-checks and the conditions of plans.
func TestTroubleshooting_lists_every_reason_of_plans(t *testing.T) {
	t.Parallel()
	set := []string{
		updatev1beta1.ReasonWaitingForInformers, updatev1beta1.ReasonUnacceptedInsights, updatev1beta1.ReasonAnalysisTooOld, updatev1beta1.ReasonInformerMissing,
		updatev1beta1.ReasonNotAnUpdate, updatev1beta1.ReasonFromReleaseChanged, updatev1beta1.ReasonInsightsChanged,
	}
	for _, path := range []string{
		"updateplan/conditions", "checks/plan", "checks/pdbs", "checks/capacity", "checks/version", "checks/operators", "checks/pools", "checks/nodes",
	} {
		for _, word := range stringsIn(t, filepath.Join("..", filepath.FromSlash(path)+".go")) {
			if planReason.MatchString(word) && !slices.Contains(noPlanReason, word) {
				set = append(set, word)
			}
		}
	}
	slices.Sort(set)
	page, err := os.ReadFile(troubleshooting)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- begin plan reasons -->\n")
	table, _, _ := strings.Cut(rest, "<!-- end plan reasons -->\n")
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| [^|]+ \\| [A-Z][^|]+ \\|$").FindAllStringSubmatch(table, -1) {
		listed = append(listed, row[1])
	}
	slices.Sort(listed)
	if diff := cmp.Diff(slices.Compact(set), listed); diff != "" {
		t.Errorf("reasons (-code +%s):\n%s", troubleshooting, diff)
	}
}
