// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
)

// migration is the state of a conversion.
type migration struct {
	former map[string]any // not converted yet
	config map[string]any // of this operator
	notes  []migrationNote
}

// migrationNote is a note about a former setting that needs attention.
type migrationNote struct {
	key, text string
	// lost is set if the setting had an effect and this operator has no equivalent.
	lost bool
}

// convertConfig converts the configuration of the former operator. It keeps the former operator's defaults
// where they differ from ours.
func convertConfig(former string) (*migration, error) {
	m := &migration{former: map[string]any{}, config: map[string]any{"apiVersion": config.APIVersion, "kind": config.Kind}}
	if err := yaml.Unmarshal([]byte(former), &m.former); err != nil {
		return nil, fmt.Errorf("parsing the configuration of the former operator: %w", err)
	}
	m.duration("upgradeWindow.timeOut", 120, "upgradeWindow")
	m.duration("upgradeWindow.delayTrigger", 30, "notifications", "delayedAfter")
	m.duration("scale.timeOut", 30, "scale", "timeout")
	m.duration("nodeDrain.timeOut", 45, "nodeDrain", "timeOut")
	m.list("healthCheck.ignoredCriticals", "alerts", "ignoreAlerts")
	m.list("healthCheck.ignoredNamespaces", "alerts", "ignoreNamespaces")
	m.list("maintenance.ignoredAlerts.controlPlaneCriticals", "maintenance", "controlPlaneAlerts")
	m.list("extDependencyAvailabilityChecks.http.urls", "externalDependencies", "urls")
	m.externalTimeout()
	m.drains()
	m.features()
	m.dropped("maintenance.controlPlaneTime", "not needed: silences are renewed while the upgrade runs, and expire after maintenance.lease")
	m.dropped("nodeDrain.expectedNodeDrainTime", "not needed: silences are renewed while the upgrade runs")
	m.dropped("validation.cincinnati", "not needed: only releases that the cluster is offered are installed")
	m.dropped("configManager", "upgrades come from UpgradeConfigs in the cluster: distribute them with Hive or GitOps, see docs/migrate.md")
	m.dropped("environment.fedramp", "not needed: this operator connects to no service outside of the cluster by default")
	m.upgradeType()
	for _, key := range leaves(m.former, "") {
		m.notes = append(m.notes, migrationNote{key, "has no equivalent, and was left out", true})
	}
	slices.SortFunc(m.notes, func(a, b migrationNote) int { return strings.Compare(a.key, b.key) })
	return m, nil
}

// text returns the converted configuration after validating it.
func (m *migration) text() (string, error) {
	text, err := yaml.Marshal(m.config)
	if err != nil {
		return "", err
	}
	if _, err := config.Parse(text); err != nil {
		return "", fmt.Errorf("the converted configuration is invalid: %w", err)
	}
	return string(text), nil
}

// take removes a former setting and returns its value, or nil.
func (m *migration) take(key string) any { return takeFrom(m.former, strings.Split(key, ".")) }

func takeFrom(from map[string]any, path []string) any {
	value, ok := from[path[0]]
	if !ok {
		return nil
	}
	if len(path) == 1 {
		delete(from, path[0])
		return value
	}
	nested, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	found := takeFrom(nested, path[1:])
	if len(nested) == 0 {
		delete(from, path[0])
	}
	return found
}

// set sets a value in the configuration of this operator.
func (m *migration) set(value any, path ...string) {
	into := m.config
	for _, key := range path[:len(path)-1] {
		nested, ok := into[key].(map[string]any)
		if !ok {
			nested = map[string]any{}
			into[key] = nested
		}
		into = nested
	}
	into[path[len(path)-1]] = value
}

func (m *migration) note(key string, lost bool, format string, args ...any) {
	m.notes = append(m.notes, migrationNote{key, fmt.Sprintf(format, args...), lost})
}

// dropped notes a former setting that needs no equivalent.
func (m *migration) dropped(key, why string) {
	if m.take(key) != nil {
		m.note(key, false, "%s", why)
	}
}

// duration converts a number of minutes. If it is missing, it uses the default of the former operator.
func (m *migration) duration(key string, byDefault float64, to ...string) {
	number, ok := m.take(key).(float64)
	if !ok || number <= 0 {
		number = byDefault
	}
	m.set(config.Duration{Duration: time.Duration(number * float64(time.Minute))}.String(), to...)
}

// list converts a list of texts.
func (m *migration) list(key string, to ...string) {
	if values := texts(m.take(key)); len(values) > 0 {
		m.set(values, to...)
	}
}

func texts(value any) []string {
	elements, ok := value.([]any)
	if !ok {
		return nil
	}
	var found []string
	for _, element := range elements {
		found = append(found, fmt.Sprint(element))
	}
	return found
}

// externalTimeout converts the timeout for external dependencies. This operator limits it.
func (m *migration) externalTimeout() {
	const key, limit = "extDependencyAvailabilityChecks.http.timeout", 15
	seconds, ok := m.take(key).(float64)
	if !ok {
		return
	}
	if seconds > limit || seconds < 1 {
		m.note(key, false, "was %v seconds, and is limited to 1 to %d: each URL is tried three times", seconds, limit)
		seconds = min(max(seconds, 1), limit)
	}
	m.set(config.Duration{Duration: time.Duration(seconds) * time.Second}.String(), "externalDependencies", "timeout")
}

// drains converts the namespaces whose pods are never forced. The former operator used regular expressions,
// and this operator uses patterns with asterisks.
func (m *migration) drains() {
	if disabled, _ := m.take("nodeDrain.disableDrainStrategies").(bool); disabled {
		m.take("nodeDrain.ignoredNamespacePatterns")
		m.set([]string{"*"}, "nodeDrain", "ignoreNamespaces")
		return
	}
	const key = "nodeDrain.ignoredNamespacePatterns"
	expressions := texts(m.take(key))
	if len(expressions) == 0 {
		return
	}
	patterns := config.Default().NodeDrain.IgnoreNamespaces
	for _, expression := range expressions {
		pattern, ok := globOf(expression)
		if !ok {
			m.note(key, true, "%q has no equivalent with asterisks: add its namespaces to nodeDrain.ignoreNamespaces", expression)
			continue
		}
		patterns = append(patterns, pattern)
	}
	m.set(patterns, "nodeDrain", "ignoreNamespaces")
}

var plainNamespace = regexp.MustCompile(`^[a-z0-9*-]+$`)

// globOf converts a regular expression of the former operator to a pattern with asterisks. The pattern may
// match more namespaces, which is safe because it protects pods.
func globOf(expression string) (string, bool) {
	pattern := strings.NewReplacer(".*", "*", ".+", "*").Replace(expression)
	start, end := strings.HasPrefix(pattern, "^"), strings.HasSuffix(pattern, "$")
	pattern = strings.TrimSuffix(strings.TrimPrefix(pattern, "^"), "$")
	if !plainNamespace.MatchString(pattern) {
		return "", false
	}
	if !start && !strings.HasPrefix(pattern, "*") {
		pattern = "*" + pattern
	}
	if !end && !strings.HasSuffix(pattern, "*") {
		pattern += "*"
	}
	return pattern, true
}

// features converts the feature gates.
func (m *migration) features() {
	const key = "featureGate.enabled"
	for _, gate := range texts(m.take(key)) {
		switch gate {
		case "PreHealthCheck": // always enabled, see preChecks.leadTime
		case "ServiceLogNotification":
			m.note(key, true, "ServiceLogNotification: have a receiver of webhook.url forward the notifications")
		default:
			m.note(key, true, "%s has no equivalent", gate)
		}
	}
}

// upgradeType notes the former type. It is now a field of each UpgradeConfig.
func (m *migration) upgradeType() {
	switch kind := m.take("upgradeType"); kind {
	case nil, "":
		m.note("upgradeType", false, "is not set, which meant ARO: set spec.type of each UpgradeConfig to ARO")
	case "OSD", "ARO":
		m.note("upgradeType", false, "set spec.type of each UpgradeConfig to %v", kind)
	default:
		m.note("upgradeType", true, "this operator has no type %v: set spec.type of each UpgradeConfig to OSD, and capacityReservation to false", kind)
	}
}

// leaves returns the paths of all values, sorted.
func leaves(of map[string]any, prefix string) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if nested, ok := of[key].(map[string]any); ok {
			keys = append(keys, leaves(nested, prefix+key+".")...)
			continue
		}
		keys = append(keys, prefix+key)
	}
	return keys
}
