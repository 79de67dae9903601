// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/informer"
)

// validate returns an error for each invalid field, except in the cluster.
func (s *Scenario) validate(fileName string) field.ErrorList {
	var allErrs field.ErrorList
	if s.Name != fileName {
		allErrs = append(allErrs, field.Invalid(field.NewPath("name"), s.Name, "must be the name of the file: "+fileName))
	}
	if s.Description == "" {
		allErrs = append(allErrs, field.Required(field.NewPath("description"), "must be a sentence that describes the scenario"))
	}
	for i, object := range s.Objects {
		allErrs = append(allErrs, validateObject(field.NewPath("objects").Index(i), object)...)
	}
	for i, object := range s.Maintenance {
		allErrs = append(allErrs, validateMaintenance(field.NewPath("maintenance").Index(i), object)...)
	}
	allErrs = append(allErrs, s.validateConfig()...)
	names := map[string]bool{}
	for i, u := range s.UpgradeConfigs {
		at := field.NewPath("upgradeConfigs").Index(i)
		if names[u.Name] {
			allErrs = append(allErrs, field.Duplicate(at.Child("name"), u.Name))
		}
		names[u.Name] = true
		if bad := validation.IsDNS1123Subdomain(u.Name); len(bad) > 0 {
			allErrs = append(allErrs, field.Invalid(at.Child("name"), u.Name, "must be lower case letters, digits, dashes and dots, such as example"))
		}
		allErrs = append(allErrs, validateOffset(at.Child("upgradeAt"), u.UpgradeAt)...)
		allErrs = append(allErrs, openshiftsim.ValidateVersion(at.Child("version"), u.Version)...)
	}
	for i, rule := range s.Rules {
		allErrs = append(allErrs, rule.validate(field.NewPath("rules").Index(i))...)
	}
	allErrs = append(allErrs, s.validateMonitoring()...)
	allErrs = append(allErrs, s.validateBinary()...)
	return append(allErrs, s.Expect.validate(field.NewPath("expect"), names)...)
}

// maxReplicas is the maximum number of operator processes that a laptop can run beside a cluster.
const maxReplicas = 5

// validateConfig parses the configuration like the operator.
func (s *Scenario) validateConfig() field.ErrorList {
	if s.Operator.Replicas < 0 || s.Operator.Replicas > maxReplicas {
		return field.ErrorList{field.Invalid(field.NewPath("operator", "replicas"), s.Operator.Replicas, fmt.Sprintf("must be 1 to %d", maxReplicas))}
	}
	const anyURL = "http://127.0.0.1:9090"
	text, err := ConfigFile(s.Operator.Config, map[string]string{PrometheusURL: anyURL, AlertmanagerURL: anyURL, ReceiverURL: anyURL})
	if err == nil {
		_, err = config.Parse([]byte(text))
	}
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("operator", "config"), field.OmitValueType{}, err.Error())}
	}
	return nil
}

// Variables for server addresses in the operator's configuration.
const (
	PrometheusURL   = "${PROMETHEUS_URL}"
	AlertmanagerURL = "${ALERTMANAGER_URL}"
	ReceiverURL     = "${RECEIVER_URL}"
)

// ConfigFile returns the text of the operator's configuration file with the variables replaced by
// addresses.
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

// validateMonitoring returns an error for each use of monitoring if the cluster has none.
func (s *Scenario) validateMonitoring() field.ErrorList {
	if s.Cluster.Monitoring != nil {
		return nil
	}
	var allErrs field.ErrorList
	require := func(user *field.Path, required bool) {
		if required {
			allErrs = append(allErrs, field.Required(field.NewPath("cluster", "monitoring"), fmt.Sprintf("%s requires it; write monitoring: {}", user)))
		}
	}
	s.eachPart(
		func(at *field.Path, object Object) { require(at, object.requiresMonitoring()) },
		func(at *field.Path, action Action) { require(at, action.requiresMonitoring()) },
	)
	text, err := json.Marshal(s.Operator.Config)
	require(field.NewPath("operator", "config"), err == nil && (strings.Contains(string(text), PrometheusURL) || strings.Contains(string(text), AlertmanagerURL)))
	return allErrs
}

func (r Rule) validate(path *field.Path) field.ErrorList {
	var allErrs field.ErrorList
	if r.Name == "" {
		allErrs = append(allErrs, field.Required(path.Child("name"), "must describe what happens"))
	}
	if r.For != nil {
		allErrs = append(allErrs, r.For.validate(path.Child("for"))...)
	}
	if r.For == nil && r.When != "" {
		allErrs = append(allErrs, field.Required(path.Child("for"), "must select the objects of the condition, such as {kind: ClusterVersion}"))
	}
	allErrs = append(allErrs, validateExpression(path.Child("when"), r.When)...)
	allErrs = append(allErrs, r.After.Validate(path.Child("after"))...)
	if r.Times < 1 {
		allErrs = append(allErrs, field.Invalid(path.Child("times"), r.Times, "must be at least 1"))
	}
	if len(r.Do) == 0 {
		allErrs = append(allErrs, field.Required(path.Child("do"), "must have at least one action, such as [{apiServer: stop}]"))
	}
	for i, action := range r.Do {
		allErrs = append(allErrs, action.validate(path.Child("do").Index(i), r.For != nil)...)
	}
	return allErrs
}

// fields returns the names of the fields of an action, and how many of them are set.
func (a Action) fields() (names []string, set int) {
	for field, value := range reflect.ValueOf(a).Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
		if !value.IsZero() {
			set++
		}
	}
	slices.Sort(names)
	return names, set
}

func (a Action) validate(path *field.Path, hasObject bool) field.ErrorList {
	var allErrs field.ErrorList
	if names, set := a.fields(); set != 1 {
		allErrs = append(allErrs, field.Invalid(path, field.OmitValueType{}, "must have exactly one of "+strings.Join(names, ", ")))
	}
	allErrs = append(allErrs, a.Wait.Validate(path.Child("wait"))...)
	if a.Patch != nil {
		allErrs = append(allErrs, a.Patch.validate(path.Child("patch"), hasObject)...)
	}
	if a.Apply != nil {
		allErrs = append(allErrs, validateObject(path.Child("apply"), a.Apply)...)
	}
	if a.Denied != nil {
		allErrs = append(allErrs, validateObject(path.Child("denied"), a.Denied)...)
	}
	if a.Delete != nil && *a.Delete != (Object{}) {
		allErrs = append(allErrs, validateTarget(path.Child("delete"), a.Delete, hasObject)...)
	} else if a.Delete != nil {
		allErrs = append(allErrs, validateTarget(path.Child("delete"), nil, hasObject)...)
	}
	if a.Release != nil {
		allErrs = append(allErrs, openshiftsim.ValidateRelease(path.Child("release"), *a.Release)...)
	}
	if a.Node != nil {
		allErrs = append(allErrs, a.Node.validate(path.Child("node"))...)
	}
	if a.Informer != nil {
		allErrs = append(allErrs, a.Informer.validate(path.Child("informer"))...)
	}
	allErrs = append(allErrs, a.validateVerbs(path)...)
	if a.Fire != nil {
		allErrs = append(allErrs, a.Fire.Validate(path.Child("fire"))...)
	}
	if a.Check != nil {
		allErrs = append(allErrs, a.Check.validate(path.Child("check"))...)
	}
	if a.Command != nil {
		allErrs = append(allErrs, a.Command.validate(path.Child("command"))...)
	}
	if a.Until != nil {
		allErrs = append(allErrs, a.Until.validate(path.Child("until"))...)
	}
	return allErrs
}

func (i Informer) validate(path *field.Path) field.ErrorList {
	var allErrs field.ErrorList
	if bad := validation.IsDNS1123Label(i.Name); len(bad) > 0 {
		allErrs = append(allErrs, field.Invalid(path.Child("name"), i.Name, "must be lower case letters, digits, and dashes, such as mine"))
	}
	if i.Break != "" && !slices.Contains(informer.Breaks(), i.Break) {
		allErrs = append(allErrs, field.NotSupported(path.Child("break"), i.Break, informer.Breaks()))
	}
	responses := []hooksv1alpha.Response{"", hooksv1alpha.ResponseSuccess, hooksv1alpha.ResponseFailure, hooksv1alpha.ResponseWait}
	if !slices.Contains(responses, i.Response) {
		allErrs = append(allErrs, field.NotSupported(path.Child("response"), i.Response, responses[1:]))
	}
	return allErrs
}

func (n Node) validate(path *field.Path) field.ErrorList {
	allErrs := n.RebootTakes.Validate(path.Child("rebootTakes"))
	if n.Name == "" {
		allErrs = append(allErrs, field.Required(path.Child("name"), "must be the name of a node, such as worker-0"))
	}
	return allErrs
}

// validateVerbs validates the verbs of actions that start, stop, or kill a program.
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
		allErrs = append(allErrs, field.Required(path.Child("with"), "must be a JSON merge patch, such as {spec: {paused: true}}, unless conditions are set"))
	}
	allErrs = append(allErrs, validateMoments(path.Child("with"), p.With)...)
	for kind, text := range p.Conditions {
		allErrs = append(allErrs, validateCondition(path.Child("conditions").Key(kind), text)...)
	}
	return allErrs
}

// validateTarget validates the object that an action changes. If it is nil, the rule must have an
// object.
func validateTarget(path *field.Path, target *Object, hasObject bool) field.ErrorList {
	switch {
	case target == nil && hasObject:
		return nil
	case target == nil:
		return field.ErrorList{field.Required(path, "must select the object, such as {kind: Node, name: worker-0}, since the rule has none")}
	case target.IsExternal():
		return field.ErrorList{field.Forbidden(path, target.Kind+"s are read-only")}
	case target.Name == "":
		return append(target.validate(path), field.Required(path.Child("name"), "must be the name of the object"))
	default:
		return target.validate(path)
	}
}

func (o Object) validate(path *field.Path) field.ErrorList {
	if o.Kind == "" {
		return field.ErrorList{field.Required(path.Child("kind"), "must be a kind, such as ClusterVersion")}
	}
	if _, known := kinds[o.Kind]; o.APIVersion == "" && !known {
		return field.ErrorList{field.Required(path.Child("apiVersion"), "must be set for kind "+o.Kind)}
	}
	return nil
}

// validateMaintenance validates a scheduled maintenance object.
func validateMaintenance(path *field.Path, object map[string]any) field.ErrorList {
	allErrs := validateObject(path, object)
	if version, _ := object["apiVersion"].(string); version != MaintenanceAPIVersion && version != "" {
		allErrs = append(allErrs, field.NotSupported(path.Child("apiVersion"), version, []string{MaintenanceAPIVersion}))
	}
	if kind, _ := object["kind"].(string); kind != "" && !slices.Contains(maintenanceKinds(), kind) {
		allErrs = append(allErrs, field.NotSupported(path.Child("kind"), kind, maintenanceKinds()))
	}
	return allErrs
}

// validateObject requires a kind and a name, and validates the variables in a complete object.
func validateObject(path *field.Path, object map[string]any) field.ErrorList {
	const whole = "must be set, as in every object"
	allErrs := validateMoments(path, object)
	for _, name := range []string{"apiVersion", "kind"} {
		if text, ok := object[name].(string); !ok || text == "" {
			allErrs = append(allErrs, field.Required(path.Child(name), whole))
		}
	}
	metadata, ok := object["metadata"].(map[string]any)
	if name, isString := metadata["name"].(string); !ok || !isString || name == "" {
		allErrs = append(allErrs, field.Required(path.Child("metadata", "name"), whole))
	}
	return allErrs
}

func (e Expect) validate(path *field.Path, configs map[string]bool) field.ErrorList {
	allErrs := e.Within.Validate(path.Child("within"))
	allErrs = append(allErrs, e.StableFor.Validate(path.Child("stableFor"))...)
	for i, u := range e.UpgradeConfigs {
		at := path.Child("upgradeConfigs").Index(i)
		if !configs[u.Name] {
			allErrs = append(allErrs, field.NotFound(at.Child("name"), u.Name))
		}
		allErrs = append(allErrs, u.validate(at, "New", "Pending", "Upgrading", "Paused", phaseUpgraded, "Failed", "Unknown")...)
	}
	for i, job := range e.UpgradeJobs {
		at := path.Child("upgradeJobs").Index(i)
		if (job.Name == "") == (job.Config == "") {
			allErrs = append(allErrs, field.Invalid(at, field.OmitValueType{}, "must have exactly one of config, name"))
		}
		allErrs = append(allErrs, job.validate(at, "New", "Pending", "Upgrading", "Paused", phaseUpgraded, "Failed", "Skipped", "Unknown")...)
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

// validate requires one of the phases of the kind.
func (e ExpectedUpgrade) validate(path *field.Path, phases ...string) field.ErrorList {
	var allErrs field.ErrorList
	if !slices.Contains(phases, e.Phase) {
		allErrs = append(allErrs, field.NotSupported(path.Child("phase"), e.Phase, phases))
	}
	for kind, text := range e.Conditions {
		allErrs = append(allErrs, validateCondition(path.Child("conditions").Key(kind), text)...)
	}
	for kind, text := range e.Steps {
		allErrs = append(allErrs, validateCondition(path.Child("steps").Key(kind), text)...)
	}
	return allErrs
}

// eachPart calls a function with the path of each object and of each action that the scenario names.
func (s *Scenario) eachPart(object func(*field.Path, Object), action func(*field.Path, Action)) {
	for i, rule := range s.Rules {
		at := field.NewPath("rules").Index(i)
		if rule.For != nil {
			object(at.Child("for"), *rule.For)
		}
		for j := range rule.Do {
			action(at.Child("do").Index(j), rule.Do[j])
		}
	}
	s.Expect.eachStatement(func(at *field.Path, statement Statement) { object(at.Child("for"), statement.For) })
}

// eachStatement calls a function with each statement and its path.
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

// notificationTypes returns the types of CloudEvents without the common prefix.
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
		allErrs = append(allErrs, field.Required(path.Child("that"), "must be a CEL expression, such as object.status.machineCount > 0"))
	}
	return append(allErrs, validateExpression(path.Child("that"), s.That)...)
}

// validateCondition validates "Status", "Status/Reason", or "Status/Reason: message".
func validateCondition(path *field.Path, text string) field.ErrorList {
	status, _, _ := strings.Cut(text, "/")
	if !slices.Contains([]string{"True", "False", "Unknown"}, status) {
		return field.ErrorList{field.Invalid(path, text, "must be True, False or Unknown, optionally with a reason after a slash, as in \"False/WindowMissed\" (in quotes)")}
	}
	return nil
}

func validateExpression(path *field.Path, expression string) field.ErrorList {
	if expression == "" {
		return nil
	}
	if _, err := compile(expression); err != nil {
		return field.ErrorList{field.Invalid(path, expression, "must be a CEL expression that is true or false: "+strings.ReplaceAll(err.Error(), "\n", " "))}
	}
	return nil
}
