// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
)

func (s *Scenario) validate(name string) field.ErrorList {
	var allErrs field.ErrorList
	if s.Name != name {
		allErrs = append(allErrs, field.Invalid(field.NewPath("name"), s.Name, fmt.Sprintf("must be the name of the file: %s", name)))
	}
	if s.Description == "" {
		allErrs = append(allErrs, field.Required(field.NewPath("description"), "say in a sentence what happens"))
	}
	allErrs = append(allErrs, s.Cluster.Validate(field.NewPath("cluster"))...)
	for i, object := range s.Objects {
		allErrs = append(allErrs, validateObject(field.NewPath("objects").Index(i), object)...)
	}
	allErrs = append(allErrs, s.validateConfig()...)
	seen := map[string]bool{}
	for i, u := range s.UpgradeConfigs {
		at := field.NewPath("upgradeConfigs").Index(i)
		if seen[u.Name] {
			allErrs = append(allErrs, field.Duplicate(at.Child("name"), u.Name))
		}
		seen[u.Name] = true
		if bad := validation.IsDNS1123Subdomain(u.Name); len(bad) > 0 {
			allErrs = append(allErrs, field.Invalid(at.Child("name"), u.Name, "must be lower case letters, digits, dashes and dots, such as example"))
		}
		allErrs = append(allErrs, devcluster.ValidateVersion(at.Child("version"), u.Version)...)
	}
	for i, rule := range s.Rules {
		allErrs = append(allErrs, rule.validate(field.NewPath("rules").Index(i))...)
	}
	allErrs = append(allErrs, s.validateMonitoring()...)
	allErrs = append(allErrs, s.validateBinary()...)
	return append(allErrs, s.Expect.validate(field.NewPath("expect"), seen)...)
}

// maxReplicas is how many operators a laptop runs beside a cluster.
const maxReplicas = 5

// validateConfig asks the operator's own reader.
func (s *Scenario) validateConfig() field.ErrorList {
	if s.Operator.Replicas < 0 || s.Operator.Replicas > maxReplicas {
		return field.ErrorList{field.Invalid(field.NewPath("operator", "replicas"), s.Operator.Replicas, fmt.Sprintf("must be 1 to %d", maxReplicas))}
	}
	const anywhere = "http://127.0.0.1:9090"
	text, err := ConfigFile(s.Operator.Config, map[string]string{PrometheusURL: anywhere, AlertmanagerURL: anywhere, ReceiverURL: anywhere})
	if err == nil {
		_, err = config.Parse([]byte(text))
	}
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("operator", "config"), field.OmitValueType{}, err.Error())}
	}
	return nil
}

// Variables in the operator's configuration that stand for the addresses of servers.
const (
	PrometheusURL   = "${PROMETHEUS_URL}"
	AlertmanagerURL = "${ALERTMANAGER_URL}"
	ReceiverURL     = "${RECEIVER_URL}"
)

// ConfigFile returns the text of an operator's configuration file, with the addresses in place of the
// variables.
func ConfigFile(settings map[string]any, addresses map[string]string) (string, error) {
	file := map[string]any{"apiVersion": config.APIVersion, "kind": config.Kind}
	maps.Copy(file, settings)
	text, err := json.Marshal(file)
	if err != nil {
		return "", err
	}
	var pairs []string
	for name, address := range addresses {
		pairs = append(pairs, name, address)
	}
	return strings.NewReplacer(pairs...).Replace(string(text)), nil
}

// validateMonitoring says what there must be a monitoring for.
func (s *Scenario) validateMonitoring() field.ErrorList {
	if s.Cluster.Monitoring != nil {
		return nil
	}
	var allErrs field.ErrorList
	require := func(by *field.Path, is bool) {
		if is {
			allErrs = append(allErrs, field.Required(field.NewPath("cluster", "monitoring"), fmt.Sprintf("%s wants one: write monitoring: {}", by)))
		}
	}
	for i, rule := range s.Rules {
		at := field.NewPath("rules").Index(i)
		require(at.Child("for"), rule.For != nil && rule.For.requiresMonitoring())
		for j, action := range rule.Do {
			require(at.Child("do").Index(j), action.requiresMonitoring())
		}
	}
	s.Expect.eachStatement(func(at *field.Path, statement Statement) {
		require(at.Child("for"), statement.For.requiresMonitoring())
	})
	text, err := json.Marshal(s.Operator.Config)
	require(field.NewPath("operator", "config"), err == nil && (strings.Contains(string(text), PrometheusURL) || strings.Contains(string(text), AlertmanagerURL)))
	return allErrs
}

func (r Rule) validate(path *field.Path) field.ErrorList {
	var allErrs field.ErrorList
	if r.Name == "" {
		allErrs = append(allErrs, field.Required(path.Child("name"), "say what happens"))
	}
	if r.For != nil {
		allErrs = append(allErrs, r.For.validate(path.Child("for"))...)
	}
	if r.For == nil && r.When != "" {
		allErrs = append(allErrs, field.Required(path.Child("for"), "name the objects that the rule looks at, such as {kind: ClusterVersion}"))
	}
	allErrs = append(allErrs, validateExpression(path.Child("when"), r.When)...)
	if r.Times < 1 {
		allErrs = append(allErrs, field.Invalid(path.Child("times"), r.Times, "must be at least 1"))
	}
	if len(r.Do) == 0 {
		allErrs = append(allErrs, field.Required(path.Child("do"), "say what to do, such as [{apiServer: stop}]"))
	}
	for i, action := range r.Do {
		allErrs = append(allErrs, action.validate(path.Child("do").Index(i), r.For != nil)...)
	}
	return allErrs
}

// countSet returns how many kinds of action are set.
func (a Action) countSet() int {
	set := 0
	for _, is := range []bool{
		a.Wait != 0, a.Patch != nil, a.Apply != nil, a.Delete != nil, a.Release != nil, a.Node != nil,
		a.Operator != "", a.Fire != nil, a.Resolve != "", a.Configure != nil, a.Check != nil, a.Until != nil,
	} {
		if is {
			set++
		}
	}
	for _, verb := range a.servers() {
		if verb != "" {
			set++
		}
	}
	return set
}

func (a Action) validate(path *field.Path, hasObject bool) field.ErrorList {
	var allErrs field.ErrorList
	if a.countSet() != 1 {
		allErrs = append(allErrs, field.Invalid(path, field.OmitValueType{}, "must have exactly one of "+joinFields(fieldsOf(Action{}))))
	}
	if a.Patch != nil {
		allErrs = append(allErrs, a.Patch.validate(path.Child("patch"), hasObject)...)
	}
	if a.Apply != nil {
		allErrs = append(allErrs, validateObject(path.Child("apply"), a.Apply)...)
	}
	if a.Delete != nil && *a.Delete != (Object{}) {
		allErrs = append(allErrs, validateTarget(path.Child("delete"), a.Delete, hasObject)...)
	} else if a.Delete != nil {
		allErrs = append(allErrs, validateTarget(path.Child("delete"), nil, hasObject)...)
	}
	if a.Release != nil {
		allErrs = append(allErrs, devcluster.ValidateRelease(path.Child("release"), *a.Release)...)
	}
	if a.Node != nil && a.Node.Name == "" {
		allErrs = append(allErrs, field.Required(path.Child("node", "name"), "name the node, such as worker-0"))
	}
	allErrs = append(allErrs, a.validateVerbs(path)...)
	if a.Fire != nil {
		allErrs = append(allErrs, a.Fire.Validate(path.Child("fire"))...)
	}
	if a.Check != nil {
		allErrs = append(allErrs, a.Check.validate(path.Child("check"))...)
	}
	if a.Until != nil {
		allErrs = append(allErrs, a.Until.validate(path.Child("until"))...)
	}
	return allErrs
}

// validateVerbs returns the errors of the actions that start, stop, or kill a program.
func (a Action) validateVerbs(path *field.Path) field.ErrorList {
	var allErrs field.ErrorList
	if verbs := []string{kill, killLeader, restart, start, stop}; a.Operator != "" && !slices.Contains(verbs, a.Operator) {
		allErrs = append(allErrs, field.NotSupported(path.Child("operator"), a.Operator, verbs))
	}
	for server, verb := range a.servers() {
		verbs := []string{start, stop}
		if server == APIServer || server == Etcd {
			verbs = []string{kill, start, stop}
		}
		if verb != "" && !slices.Contains(verbs, verb) {
			allErrs = append(allErrs, field.NotSupported(path.Child(string(server)), verb, verbs))
		}
	}
	return allErrs
}

func (p Patch) validate(path *field.Path, hasObject bool) field.ErrorList {
	allErrs := validateTarget(path.Child("for"), p.For, hasObject)
	if len(p.With) == 0 && len(p.Conditions) == 0 {
		allErrs = append(allErrs, field.Required(path.Child("with"), "give a JSON merge patch, such as {spec: {paused: true}}, or conditions"))
	}
	for kind, text := range p.Conditions {
		allErrs = append(allErrs, validateCondition(path.Child("conditions").Key(kind), text)...)
	}
	return allErrs
}

func validateTarget(path *field.Path, target *Object, hasObject bool) field.ErrorList {
	switch {
	case target == nil && hasObject:
		return nil
	case target == nil:
		return field.ErrorList{field.Required(path, "name the object, such as {kind: Node, name: worker-0}: the rule is not about one")}
	case target.IsExternal():
		return field.ErrorList{field.Forbidden(path, target.Kind+"s can be looked at, and not changed")}
	case target.Name == "":
		return append(target.validate(path), field.Required(path.Child("name"), "name the object"))
	default:
		return target.validate(path)
	}
}

func (o Object) validate(path *field.Path) field.ErrorList {
	if o.Kind == "" {
		return field.ErrorList{field.Required(path.Child("kind"), "name the kind, such as ClusterVersion")}
	}
	if _, known := kinds[o.Kind]; o.APIVersion == "" && !known {
		return field.ErrorList{field.Required(path.Child("apiVersion"), fmt.Sprintf("of kind %s nobody knows it by heart", o.Kind))}
	}
	return nil
}

func validateObject(path *field.Path, object map[string]any) field.ErrorList {
	var allErrs field.ErrorList
	for _, name := range []string{"apiVersion", "kind"} {
		if text, is := object[name].(string); !is || text == "" {
			allErrs = append(allErrs, field.Required(path.Child(name), "give the whole object"))
		}
	}
	metadata, is := object["metadata"].(map[string]any)
	if name, isText := metadata["name"].(string); !is || !isText || name == "" {
		allErrs = append(allErrs, field.Required(path.Child("metadata", "name"), "give the whole object"))
	}
	return allErrs
}

func (e Expect) validate(path *field.Path, configs map[string]bool) field.ErrorList {
	var allErrs field.ErrorList
	for i, u := range e.UpgradeConfigs {
		at := path.Child("upgradeConfigs").Index(i)
		if !configs[u.Name] {
			allErrs = append(allErrs, field.NotFound(at.Child("name"), u.Name))
		}
		if phases := []string{"New", "Pending", "Upgrading", phaseUpgraded, "Failed", "Unknown"}; !slices.Contains(phases, u.Phase) {
			allErrs = append(allErrs, field.NotSupported(at.Child("phase"), u.Phase, phases))
		}
		for kind, text := range u.Conditions {
			allErrs = append(allErrs, validateCondition(at.Child("conditions").Key(kind), text)...)
		}
		for kind, text := range u.Steps {
			allErrs = append(allErrs, validateCondition(at.Child("steps").Key(kind), text)...)
		}
	}
	for i, kind := range e.Notifications {
		if known := notificationTypes(); !slices.Contains(known, kind) {
			allErrs = append(allErrs, field.NotSupported(path.Child("notifications").Index(i), kind, known))
		}
	}
	if states := []string{completed, "Partial"}; e.ClusterVersion != nil && !slices.Contains(states, e.ClusterVersion.State) {
		allErrs = append(allErrs, field.NotSupported(path.Child("clusterVersion", "state"), e.ClusterVersion.State, states))
	}
	e.eachStatement(func(at *field.Path, statement Statement) { allErrs = append(allErrs, statement.validate(at)...) })
	return allErrs
}

// eachStatement calls a function with each statement and its place.
func (e Expect) eachStatement(call func(*field.Path, Statement)) {
	for _, list := range []struct {
		name       string
		statements []Statement
	}{{"finally", e.Finally}, {"eventually", e.Eventually}, {"never", e.Never}} {
		for i, statement := range list.statements {
			call(field.NewPath("expect", list.name).Index(i), statement)
		}
	}
}

// notificationTypes are the types of CloudEvents that there are, without what all begin with.
func notificationTypes() []string {
	var known []string
	for _, each := range webhook.Types() {
		known = append(known, strings.TrimPrefix(each[0], eventTypes))
	}
	return known
}

func (s Statement) validate(path *field.Path) field.ErrorList {
	allErrs := s.For.validate(path.Child("for"))
	if s.That == "" {
		allErrs = append(allErrs, field.Required(path.Child("that"), "give a CEL expression, such as object.status.machineCount > 0"))
	}
	return append(allErrs, validateExpression(path.Child("that"), s.That)...)
}

// validateCondition checks "Status", "Status/Reason" and "Status/Reason: message".
func validateCondition(path *field.Path, text string) field.ErrorList {
	status, _, _ := strings.Cut(text, "/")
	if !slices.Contains([]string{"True", "False", "Unknown"}, status) {
		return field.ErrorList{field.Invalid(path, text, "must be True, False or Unknown, and a reason after a slash if one is known, as in \"False/WindowMissed\" (in quotes)")}
	}
	return nil
}

func validateExpression(path *field.Path, expression string) field.ErrorList {
	if expression == "" {
		return nil
	}
	if _, err := compile(expression); err != nil {
		return field.ErrorList{field.Invalid(path, expression, fmt.Sprintf("must be a CEL expression that is true or false: %s", strings.ReplaceAll(err.Error(), "\n", " ")))}
	}
	return nil
}
