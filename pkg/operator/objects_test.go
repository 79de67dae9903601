// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// examples returns the manifests in the documentation of object conditions.
func examples(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/concepts/object-conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		all = append(all, strings.Split(block[1], "---\n")...)
	}
	if len(all) != 5 {
		t.Fatalf("the page has %d manifests", len(all))
	}
	return all
}

func TestObjectConditions_of_the_page(t *testing.T) {
	t.Parallel()
	manifests, clk := examples(t), clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	cfg, err := config.Parse([]byte(manifests[0]))
	if err != nil {
		t.Fatal(err)
	}
	deps, err := newDeps(cfg, clk, nil)
	if err != nil || len(cfg.HealthCheck.Objects) != 1 {
		t.Fatalf("%d objects, %v", len(cfg.HealthCheck.Objects), err)
	}
	var job maintenancev1beta1.UpgradeJob
	if err := yaml.UnmarshalStrict([]byte(manifests[1]), &job); err != nil {
		t.Fatal(err)
	}
	objects := job.Spec.Config.PreUpgradeHealthChecks.Objects
	if reason, message, err := (upgraders.Job{Deps: deps}).ConfigProblem(t.Context(), &job, clk.Now()); reason != "" || err != nil || len(objects) != 2 {
		t.Errorf("%d objects, %s: %s, %v", len(objects), reason, message, err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(manifests[4]), &role); err != nil {
		t.Fatal(err)
	}
	for _, object := range append(objects, maintenancev1beta1.ObjectCheck(cfg.HealthCheck.Objects[0])) {
		granted := false
		for _, rule := range role.Rules {
			granted = granted || rule.APIGroups[0]+"/v1" == object.APIVersion && rule.Resources[0] == strings.ToLower(object.Kind)+"s"
		}
		if !granted {
			t.Errorf("the ClusterRole lacks %s of %s", object.Kind, object.APIVersion)
		}
	}

	objects[1].Expr = "object.status.readyReplicas =="
	reason, message, err := (upgraders.Job{Deps: deps}).ConfigProblem(t.Context(), &job, clk.Now())
	if err != nil || reason != upgraders.ReasonInvalidHealthChecks || !strings.HasPrefix(message, "spec.config.preUpgradeHealthChecks.objects[1].expr: column 31: Syntax error") {
		t.Errorf("an invalid expression of an UpgradeJob: %s: %s, %v", reason, message, err)
	}
	for want, edit := range map[string]func(*config.ObjectCheck){
		"healthCheck.objects[0].expr: column 1: undeclared reference to 'objekt'": func(o *config.ObjectCheck) { o.Expr = "objekt.spec" },
		"healthCheck.objects[0].kind: conditions on Secrets are not evaluated":    func(o *config.ObjectCheck) { o.APIVersion, o.Kind = "v1", "Secret" },
		"healthCheck.objects[0].name: either name or selector is required":        func(o *config.ObjectCheck) { o.Name = "both" },
	} {
		invalid := cfg.HealthCheck.Objects[0]
		edit(&invalid)
		other := cfg
		other.HealthCheck.Objects = []config.ObjectCheck{invalid}
		if _, err := newDeps(other, clk, nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
