// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Level is the severity of a finding.
type Level int

// The levels in ascending order.
const (
	LevelStatus Level = iota
	LevelInfo
	LevelWarning
	LevelError
	LevelCritical
)

// Blocks reports whether a finding of the level closes a health gate.
func (l Level) Blocks() bool { return l >= LevelWarning }

// Scope is the part of the cluster that a finding is about.
type Scope string

// The scopes.
const (
	ScopeControlPlane Scope = "ControlPlane"
	ScopeWorkerPool   Scope = "WorkerPool"
)

// Type is the kind of impact of a finding on an update.
type Type string

// The types.
const (
	TypeUnknown             Type = "Unknown"
	TypeClusterCapacity     Type = "Cluster Capacity"
	TypeApplicationOutage   Type = "Application Outage"
	TypeUpdateSpeed         Type = "Update Speed"
	TypeUpdateStalled       Type = "Update Stalled"
	TypeClusterAvailability Type = "Cluster Availability"
)

// Resource identifies an object that a finding is about.
type Resource struct {
	Group, Kind, Namespace, Name string
}

// String returns the namespace and the name.
func (r Resource) String() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

func (r Resource) compare(other Resource) int {
	return cmp.Or(cmp.Compare(r.Kind, other.Kind), cmp.Compare(r.Namespace, other.Namespace), cmp.Compare(r.Name, other.Name))
}

// Finding describes a problem that a check found.
type Finding struct {
	// Informer is the name of the check, which is the built-in informer for update status.
	Informer string
	// Key identifies what the finding is about if it has no resources.
	Key string
	// ID is the UID of a finding that reason, key, and resources do not identify; empty if they do.
	ID        string
	Scope     Scope
	Resources []Resource
	Level     Level
	Type      Type
	// Reason is one CamelCase word.
	Reason string
	// Summary is one line about what is wrong with all objects of this reason, such as "nodes not
	// ready". Messages list findings of one summary together.
	Summary string
	// Description is the object's own report about it, in one bounded line; it may be empty.
	Description string
	// Since is when it began; zero if unknown.
	Since time.Time
	// Reference is an https URL with more about it; empty means none.
	Reference string
	// Remedy describes what a person can do about it; empty if no remedy is known.
	Remedy string
	// Err is why something could not be determined; nil if it could. A gate reports the error in place
	// of the finding.
	Err error
	// CausedBy lists the UIDs of the findings that cause this one.
	CausedBy []string
}

// UID identifies the finding by what is wrong and with which objects, never by text, time, count,
// or index.
func (f Finding) UID() string {
	if f.ID != "" {
		return f.ID
	}
	parts := []string{f.Reason}
	if f.Key != "" {
		parts = append(parts, f.Key)
	}
	for _, r := range f.Resources {
		parts = append(parts, r.Kind+"/"+r.String())
	}
	return strings.Join(parts, "/")
}

// maxUID bounds the UID of a finding of a plan, in bytes.
const maxUID = 253

// NewUID returns the UID of a finding of a plan: its parts, with a hash in place of the end if it is too
// long.
func NewUID(parts ...string) string {
	id := strings.Join(parts, "/")
	if len(id) <= maxUID {
		return id
	}
	suffix := "-" + text.Hash(id, 16)
	return text.Cut(id, maxUID-len(suffix)) + suffix
}

// PlanUID returns the UID with which an UpdatePlan reports the finding, by what is wrong and with which
// object. Health gates and plans report the same: what an administrator has accepted in a plan is
// recognized by it. Empty if plans report no such finding.
func (f Finding) PlanUID() string {
	switch {
	case f.Key == keyClusterVersion:
		return NewUID("version", f.Reason)
	case len(f.Resources) == 0:
		return ""
	}
	of := f.Resources[0]
	switch kind := planKinds[of.Kind]; {
	case kind == "":
		return ""
	case of.Kind == "Alert", len(f.Resources) == 1 && f.Reason == reasonPDBBlocksEviction:
		return NewUID(kind, of.Namespace, of.Name)
	case of.Kind != "PodDisruptionBudget":
		return NewUID(kind, of.Name, f.Reason)
	case len(f.Resources) > 1:
		return NewUID(kind, of.Namespace, of.Name, f.Resources[1].Name, f.Reason)
	default:
		return NewUID(kind, of.Namespace, of.Name, f.Reason)
	}
}

// planKinds are the kinds of objects about which plans have findings, as their UIDs name them.
var planKinds = map[string]string{
	"ClusterOperator": "operator", "MachineConfigPool": "pool", "Node": "node", "Alert": "alert", "PodDisruptionBudget": "pdb",
}

// IsPlanUID reports whether PlanUID may return a UID.
func IsPlanUID(uid string) bool {
	kind, _, _ := strings.Cut(uid, "/")
	return kind == "version" || slices.Contains(slices.Collect(maps.Values(planKinds)), kind)
}

// item returns the object and its details, for a message that lists several findings.
func (f *Finding) item() string {
	details := f.Description
	if details == "" {
		details = text.FormatSince(f.Since)
	}
	if len(f.Resources) == 0 {
		return details
	}
	names := make([]string, len(f.Resources))
	for i, r := range f.Resources {
		names[i] = r.String()
	}
	return text.WithReason(strings.Join(names, " and "), details)
}

func anyBlocks(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Level.Blocks() })
}

// Message names every finding that blocks, grouped by summary, in the order of the findings.
func Message(findings []Finding) string { return joinFindings(findings, true) }

// joinFindings names the findings that block, or those that do not, grouped by summary.
func joinFindings(findings []Finding, blocking bool) string {
	var messages []string
	items := map[string][]string{}
	for i := range findings { // there may be thousands, of few summaries
		f := &findings[i]
		if f.Level.Blocks() != blocking {
			continue
		}
		if items[f.Summary] == nil {
			messages = append(messages, f.Summary)
		}
		items[f.Summary] = append(items[f.Summary], f.item())
	}
	for i, summary := range messages {
		if names := text.JoinInPlace(items[summary]); names != "" {
			messages[i] += ": " + names
		}
	}
	return strings.Join(messages, "; ")
}
