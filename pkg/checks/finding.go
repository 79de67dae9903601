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

// Levels in ascending order.
const (
	LevelStatus Level = iota
	LevelInfo
	LevelWarning
	LevelError
	LevelCritical
)

// Blocks reports whether a finding of this level closes a health gate.
func (l Level) Blocks() bool { return l >= LevelWarning }

// Scope is the part of the cluster that a finding is about.
type Scope string

// Scopes of findings.
const (
	ScopeControlPlane Scope = "ControlPlane"
	ScopeWorkerPool   Scope = "WorkerPool"
)

// Type is the kind of impact that a finding has on an update.
type Type string

// Types of impact.
const (
	TypeUnknown             Type = "Unknown"
	TypeClusterCapacity     Type = "Cluster Capacity"
	TypeApplicationOutage   Type = "Application Outage"
	TypeUpdateSpeed         Type = "Update Speed"
	TypeUpdateStalled       Type = "Update Stalled"
	TypeClusterAvailability Type = "Cluster Availability"
)

// Resource identifies an object of a finding.
type Resource struct {
	Group, Kind, Namespace, Name string
}

// String returns the namespace, if any, and the name.
func (r Resource) String() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

func (r Resource) compare(other Resource) int {
	return cmp.Or(cmp.Compare(r.Kind, other.Kind), cmp.Compare(r.Namespace, other.Namespace), cmp.Compare(r.Name, other.Name))
}

// Finding describes a problem found by a check.
type Finding struct {
	// Informer is the name of the check. For an update status, it is the built-in informer.
	Informer string
	// Key identifies the subject of a finding without resources.
	Key string
	// ID overrides the UID if the reason, key, and resources do not identify the finding.
	ID        string
	Scope     Scope
	Resources []Resource
	Level     Level
	Type      Type
	// Reason is one CamelCase word.
	Reason string
	// Summary is one line that describes the problem for all objects with this reason, such as "nodes not
	// ready". Messages group findings by summary.
	Summary string
	// Description is what the object itself reports, as one line of limited length. It may be empty.
	Description string
	// Since is when the problem began, or zero if this is unknown.
	Since time.Time
	// MinDuration is how long what the finding describes must last to be a problem, because each update shows
	// it for a moment. It is zero for most findings.
	MinDuration time.Duration
	// Reference is an https URL with more information, or empty.
	Reference string
	// Remedy describes what users can do, or is empty if no remedy is known.
	Remedy string
	// Err explains why something could not be determined, or is nil. A gate reports the error instead of the
	// finding.
	Err error
	// CausedBy lists the UIDs of the findings that cause this one.
	CausedBy []string
}

// UID identifies the finding by its problem and objects, and never by a text, time, count, or index.
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

// maxUID limits the UID of a plan's finding, in bytes.
const maxUID = 253

// NewUID joins the parts to the UID of a plan's finding. If it is too long, a hash replaces the end.
func NewUID(parts ...string) string {
	id := strings.Join(parts, "/")
	if len(id) <= maxUID {
		return id
	}
	suffix := "-" + text.Hash(id, 16)
	return text.Cut(id, maxUID-len(suffix)) + suffix
}

// PlanUID returns the UID that UpdatePlans use for the finding, or "" if plans do not report such findings.
// Health gates use it to recognize findings that an administrator has accepted in a plan.
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

// planKinds maps the kinds that plans report on to their names in UIDs.
var planKinds = map[string]string{
	"ClusterOperator": "operator", "MachineConfigPool": "pool", "Node": "node", "Alert": "alert", "PodDisruptionBudget": "pdb",
}

// IsPlanUID reports whether a UID may come from PlanUID.
func IsPlanUID(uid string) bool {
	kind, _, _ := strings.Cut(uid, "/")
	return kind == "version" || slices.Contains(slices.Collect(maps.Values(planKinds)), kind)
}

// item returns the object and its details for a message that lists several findings.
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

// Message lists all blocking findings, grouped by summary in the order of the findings.
func Message(findings []Finding) string { return joinFindings(findings, true) }

// joinFindings lists the blocking or the other findings, grouped by summary.
func joinFindings(findings []Finding, blocking bool) string {
	var messages []string
	items := map[string][]string{}
	for i := range findings { // there may be thousands of findings with few summaries
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
