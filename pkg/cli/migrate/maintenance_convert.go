// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// fields holds the fields of an object.
type fields = map[string]any

// maintenanceMigration converts objects of another controller in the API group.
type maintenanceMigration struct {
	namespace  string
	forceDrain string // config.forceDrainAfter from a NodeForceDrain for all nodes, or empty
	notes      []migrationNote

	object string // being converted
}

// note records that a field needs attention. lose records that it has no equivalent.
func (m *maintenanceMigration) note(field, format string, args ...any) {
	m.notes = append(m.notes, migrationNote{m.object + " " + field, fmt.Sprintf(format, args...), false})
}

func (m *maintenanceMigration) lose(field, format string, args ...any) {
	m.note(field, format, args...)
	m.notes[len(m.notes)-1].lost = true
}

// otherSpellings lists the other controller's fields that are converted. They are dropped where they are not
// converted.
var otherSpellings = []string{"maxSchedulingDelay", "skipDegradedOperatorsCheck", "enabled", "selector", "force", "architecture", "creationTimestamp"}

// convert returns the converted object, or nil if there is none. It notes every dropped field.
func (m *maintenanceMigration) convert(from *unstructured.Unstructured) fields {
	m.object = from.GetKind() + "/" + from.GetName()
	spec, _ := from.Object["spec"].(fields)
	if spec == nil {
		spec = fields{}
	}
	converted := fields{"apiVersion": from.GetAPIVersion(), "kind": from.GetKind(), "metadata": m.metadata(from), "spec": spec}
	typed := map[string]any{
		"ClusterVersion": maintenancev1beta1.ClusterVersion{}, "UpgradeConfig": maintenancev1beta1.UpgradeConfig{}, "UpgradeJob": maintenancev1beta1.UpgradeJob{},
		"UpgradeJobHook": maintenancev1beta1.UpgradeJobHook{}, "UpgradeSuspensionWindow": maintenancev1beta1.UpgradeSuspensionWindow{},
	}[from.GetKind()]
	if typed != nil {
		m.loseUnknown(converted, typed, otherSpellings...)
	}
	if !m.convertSpec(from, spec) {
		return nil
	}
	m.loseUnknown(converted, typed)
	return converted
}

// loseUnknown drops fields that this operator does not have, except for fields with the given names.
func (m *maintenanceMigration) loseUnknown(converted fields, typed any, except ...string) {
	for _, field := range stored.DropUnknown(converted, typed, except...) {
		m.lose(field, "has no equivalent, and was left out")
	}
}

// convertSpec converts a spec. It returns false if this operator has no such object.
func (m *maintenanceMigration) convertSpec(from *unstructured.Unstructured, spec fields) bool {
	switch from.GetKind() {
	case "NodeForceDrain":
		m.convertDrain(spec)
		return false
	case "ClusterVersion":
		m.convertVersion(spec)
	case "UpgradeConfig":
		m.convertConfig(spec)
	case "UpgradeJob":
		if m.hasEnded(from) {
			m.note("", "was left out: it has ended; delete it, or this operator takes it for a new one")
			return false
		}
		m.convertJob(spec)
	case "UpgradeJobHook":
		if claimed, _, _ := unstructured.NestedString(from.Object, "status", "claimedBy", "name"); claimed != "" && spec["run"] == "Next" {
			m.note("", "was left out: it has run for UpgradeJob %s, and runs once", claimed)
			return false
		}
		m.convertHook(spec)
	case "UpgradeSuspensionWindow":
		if spec["reason"] == "" {
			delete(spec, "reason")
		}
	default:
		m.lose("", "has no equivalent, and was left out")
		return false
	}
	return true
}

// convertVersion checks the template and overlays. They have the fields of OpenShift's ClusterVersion.
func (m *maintenanceMigration) convertVersion(spec fields) {
	m.convertTemplate(spec["template"], "spec.template")
	overlays, _ := spec["overlays"].([]any)
	for i, value := range overlays {
		if overlay, ok := value.(fields); ok {
			m.convertTemplate(overlay["overlay"], fmt.Sprintf("spec.overlays[%d].overlay", i))
		}
	}
}

func (m *maintenanceMigration) convertTemplate(value any, path string) {
	template, _ := value.(fields)
	spec, _ := template["spec"].(fields)
	if _, set := spec["desiredUpdate"]; set {
		delete(spec, "desiredUpdate")
		m.lose(path+".spec.desiredUpdate", "was left out: UpgradeJobs request the updates")
	}
	for _, field := range stored.Unknown(spec, configv1.ClusterVersionSpec{}) {
		m.note(path+".spec."+field, "is applied as it is: this command does not know it as a field of the ClusterVersion of OpenShift")
	}
}

func (m *maintenanceMigration) metadata(from *unstructured.Unstructured) fields {
	metadata := fields{"name": from.GetName(), "namespace": m.namespace}
	if labels := from.GetLabels(); len(labels) > 0 {
		metadata["labels"] = labels
	}
	annotations := from.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "kubectl.kubernetes.io/") })
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	return metadata
}

// hasEnded reports whether an UpgradeJob of the other controller has succeeded or failed.
func (*maintenanceMigration) hasEnded(job *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		c, ok := condition.(fields)
		return ok && (c["type"] == "Succeeded" || c["type"] == "Failed") && c["status"] == "True"
	})
}

func (m *maintenanceMigration) convertConfig(spec fields) {
	if _, set := spec["maxSchedulingDelay"]; set {
		delete(spec, "maxSchedulingDelay")
		m.note("spec.maxSchedulingDelay", "not needed: an UpgradeJob may be created until maxUpgradeStartDelay has passed")
	}
	m.duration(spec, "spec", "pinVersionWindow")
	delay := m.duration(spec, "spec", "maxUpgradeStartDelay")
	if delay == 0 {
		delay = time.Hour
	}
	if schedule, ok := spec["schedule"].(fields); ok {
		m.convertSchedule(schedule)
	}
	m.historyLimit(spec)
	m.note("spec", "by default, a start without an update runs no hooks: set whenNoUpdate: RunHooks if hooks must run")
	template, ok := spec["jobTemplate"].(fields)
	if !ok {
		return
	}
	if metadata, ok := template["metadata"].(fields); ok {
		delete(metadata, "creationTimestamp")
		if len(metadata) == 0 {
			delete(template, "metadata")
		}
	}
	if config, ok, _ := unstructured.NestedFieldNoCopy(template, "spec", "config"); ok {
		if config, ok := config.(fields); ok {
			m.convertUpgrade(config, "spec.jobTemplate.spec.config", delay)
		}
	}
}

func (m *maintenanceMigration) convertSchedule(schedule fields) {
	if location := schedule["location"]; location == nil || location == "Local" || location == "" {
		schedule["location"] = "UTC"
		m.note("spec.schedule.location", "is UTC now: the time zone of the other controller's container is not known; set the name of a time zone")
	}
	if schedule["isoWeek"] == "" {
		delete(schedule, "isoWeek")
	}
}

// historyLimit converts a limit of 0. The other controller treats it as no limit.
func (m *maintenanceMigration) historyLimit(spec fields) {
	const most = 100
	limit, set := spec["successfulJobsHistoryLimit"]
	text := fmt.Sprint(limit) // may come from YAML or from the cluster
	if n, err := strconv.Atoi(text); set && (err != nil || n <= 0 || n > most) {
		spec["successfulJobsHistoryLimit"] = int64(most)
		m.note("spec.successfulJobsHistoryLimit", "is %d now, the highest limit", most)
	}
}

func (m *maintenanceMigration) convertJob(spec fields) {
	if version, ok := spec["desiredVersion"].(fields); ok {
		for _, name := range []string{"force", "architecture"} {
			if value := version[name]; value == false || value == "" {
				delete(version, name)
			}
		}
		if version["image"] == "" {
			delete(version, "image")
		}
	}
	window := time.Hour
	start, errStart := time.Parse(time.RFC3339, fmt.Sprint(spec["startAfter"]))
	end, errEnd := time.Parse(time.RFC3339, fmt.Sprint(spec["startBefore"]))
	if errStart == nil && errEnd == nil {
		window = end.Sub(start)
	}
	if config, ok := spec["config"].(fields); ok {
		m.convertUpgrade(config, "spec.config", window)
	}
}

func (m *maintenanceMigration) convertHook(spec fields) {
	for _, name := range []string{"run", "failurePolicy"} {
		if spec[name] == "" {
			delete(spec, name)
		}
	}
	unstructured.RemoveNestedField(spec, "template", "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(spec, "template", "spec", "template", "metadata", "creationTimestamp")
	if metadata, ok, _ := unstructured.NestedMap(spec, "template", "metadata"); ok && len(metadata) == 0 {
		unstructured.RemoveNestedField(spec, "template", "metadata")
	}
	account, _, _ := unstructured.NestedString(spec, "template", "spec", "template", "spec", "serviceAccountName")
	if account != "" {
		m.note("spec.template", "uses ServiceAccount %s: add it to hooks.serviceAccounts of the configuration", account)
	}
}

// convertUpgrade converts an upgrade configuration. The upgrade must commence within the window.
func (m *maintenanceMigration) convertUpgrade(config fields, path string, window time.Duration) {
	timeout := m.duration(config, path, "upgradeTimeout")
	if timeout == 0 {
		timeout = 12 * time.Hour
	}
	for _, name := range []string{"preUpgradeHealthChecks", "postUpgradeHealthChecks"} {
		m.convertHealth(config, path, name)
	}
	m.convertPools(config, path, window, timeout)
	m.convertPauseOnFailure(config, path+".pauseMachineConfigPoolsOnFailure")
	if _, set := config["forceDrainAfter"]; !set && m.forceDrain != "" {
		config["forceDrainAfter"] = m.forceDrain
	}
}

func (m *maintenanceMigration) convertHealth(config fields, path, name string) {
	checks, ok := config[name].(fields)
	if !ok {
		checks = fields{}
		config[name] = checks
	}
	path += "." + name
	if skip, set := checks["skipDegradedOperatorsCheck"]; set {
		delete(checks, "skipDegradedOperatorsCheck")
		if skip == true {
			checks["checkDegradedOperators"] = false
		}
	}
	if m.duration(checks, path, "timeout") == 0 {
		checks["timeout"] = "1h" // default of the other controller
	}
	if _, set := checks["checkCriticalAlerts"]; !set {
		m.note(path, "critical alerts are checked as well; set checkCriticalAlerts: false to ignore them")
	}
}

func (m *maintenanceMigration) convertPools(config fields, path string, window, timeout time.Duration) {
	entries, _ := config["machineConfigPools"].([]any)
	var kept []any
	for i, value := range entries {
		entryPath := fmt.Sprintf("%s.machineConfigPools[%d]", path, i)
		entry, ok := value.(fields)
		if !ok {
			continue
		}
		flattenSelector(entry)
		delay, _ := entry["delayUpgrade"].(fields)
		switch {
		case len(delay) == 0:
			m.note(entryPath, "was left out: it delays nothing")
			continue
		case !selectsSome(entry):
			m.lose(entryPath, "was left out: it selects no pools, or all of them, and the control plane cannot be delayed")
			continue
		}
		m.convertDelay(delay, entryPath+".delayUpgrade", window, timeout)
		kept = append(kept, entry)
	}
	delete(config, "machineConfigPools")
	if len(kept) > 0 {
		config["machineConfigPools"] = kept
	}
}

// convertDelay converts delayMin and delayMax. The other controller counts delayMax from startBefore and has
// no limit if it is unset.
func (m *maintenanceMigration) convertDelay(delay fields, path string, window, timeout time.Duration) {
	if delay["startAfter"] != nil || delay["startBefore"] != nil {
		return // already in the format of this operator
	}
	earliest, latest := m.duration(delay, path, "delayMin"), m.duration(delay, path, "delayMax")
	delay["delayMin"] = formatLength(earliest)
	if latest > 0 {
		delay["delayMax"] = formatLength(latest + window)
		m.note(path+".delayMax", "counts from startAfter now: %s", delay["delayMax"])
		return
	}
	delay["delayMax"] = formatLength(max(timeout, earliest))
	m.note(path+".delayMax", "is required: %s, until upgradeTimeout", delay["delayMax"])
}

// convertPauseOnFailure converts a selector with a separate field that enables it.
func (m *maintenanceMigration) convertPauseOnFailure(config fields, path string) {
	const name = "pauseMachineConfigPoolsOnFailure"
	pause, ok := config[name].(fields)
	if !ok {
		return
	}
	enabled, set := pause["enabled"]
	if !set {
		return // already in the format of this operator
	}
	delete(config, name)
	if enabled != true {
		return
	}
	selector, _ := pause["selector"].(fields)
	if selector == nil {
		selector = fields{}
	}
	flattenSelector(selector)
	if !selectsSome(selector) {
		selector["matchExpressions"] = []any{fields{"key": "operator.machineconfiguration.openshift.io/required-for-upgrade", "operator": "DoesNotExist"}}
		m.note(path, "selects all pools that the upgrade does not require")
	}
	config[name] = selector
}

// convertDrain notes drains that are forced on all nodes.
func (m *maintenanceMigration) convertDrain(spec fields) {
	grace := m.duration(spec, "spec", "nodeDrainGracePeriod")
	nodes, _ := spec["nodeSelector"].(fields)
	namespaces, _ := spec["namespaceSelector"].(fields)
	switch {
	case grace <= 0:
	case selectsSome(nodes) || selectsSome(namespaces):
		m.lose("spec", "forces drains of some nodes or namespaces only: set forceDrainAfter: %s of the UpgradeConfigs if that may apply to all", formatLength(grace))
	default:
		m.forceDrain = cmp.Or(m.forceDrain, formatLength(grace))
		m.note("spec.nodeDrainGracePeriod", "is forceDrainAfter: %s of each UpgradeConfig", m.forceDrain)
	}
	if m.duration(spec, "spec", "podForceDeleteGracePeriod") > 0 {
		m.lose("spec.podForceDeleteGracePeriod", "has no equivalent: pods that do not terminate are reported, and not deleted again")
	}
}

// flattenSelector replaces a label selector nested in matchLabels with its fields.
func flattenSelector(in fields) {
	labels, ok := in["matchLabels"].(fields)
	if !ok {
		return
	}
	inner, hasLabels := labels["matchLabels"].(fields)
	expressions, hasExpressions := labels["matchExpressions"].([]any)
	if !hasLabels && !hasExpressions {
		return
	}
	delete(in, "matchLabels")
	if hasLabels {
		in["matchLabels"] = inner
	}
	if hasExpressions {
		in["matchExpressions"] = expressions
	}
}

// selectsSome reports whether a selector has any requirements.
func selectsSome(selector fields) bool {
	labels, _ := selector["matchLabels"].(fields)
	expressions, _ := selector["matchExpressions"].([]any)
	return len(labels) > 0 || len(expressions) > 0
}

// duration converts and returns a duration. It returns 0 if the duration is unset.
func (m *maintenanceMigration) duration(in fields, path, name string) time.Duration {
	text, set := in[name].(string)
	if !set {
		delete(in, name)
		return 0
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < 0 {
		delete(in, name)
		if text != "" {
			m.lose(path+"."+name, "%q is not a length of time, and was left out", text)
		}
		return 0
	}
	in[name] = formatLength(length)
	return length
}

// formatLength formats a duration in whole seconds as the API accepts it.
func formatLength(length time.Duration) string {
	if length%time.Second != 0 {
		length = length.Truncate(time.Second) + time.Second
	}
	text := length.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
