// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"crypto/sha256"
	"encoding/hex"
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
	TypeAPIAvailability     Type = "API Availability"
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

// Finding is what a check found.
type Finding struct {
	// Informer is the name of the check, which is the built-in informer for update status.
	Informer string
	// Key identifies what the finding is about if it has no resources.
	Key string
	// ID is the UID of a finding that reason, key, and resources do not identify; empty means that
	// they do.
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
	// Description is what the object reports about it, in one bounded line; it may be empty.
	Description string
	// Since is when it began; zero means that this is unknown.
	Since time.Time
	// Reference is an https URL with more about it; empty means none.
	Reference string
	// Remedy is what a person can do about it; empty means that none is known.
	Remedy string
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
	hash := sha256.Sum256([]byte(id))
	suffix := "-" + hex.EncodeToString(hash[:16])
	return text.Cut(id, maxUID-len(suffix)) + suffix
}

// PlanUID returns the UID with which an UpdatePlan reports the finding, by what is wrong and with which
// object. Health gates and plans report the same: what an administrator has accepted in a plan is
// recognized by it. Empty means that plans report no such finding.
func (f Finding) PlanUID() string {
	switch {
	case f.Key == keyClusterVersion:
		return NewUID("version", f.Reason)
	case len(f.Resources) == 0:
		return ""
	}
	of := f.Resources[0]
	switch of.Kind {
	case "ClusterOperator":
		return NewUID("operator", of.Name, f.Reason)
	case "MachineConfigPool":
		return NewUID("pool", of.Name, f.Reason)
	case "Node":
		return NewUID("node", of.Name, f.Reason)
	case "Alert":
		return NewUID("alert", of.Namespace, of.Name)
	case "PodDisruptionBudget":
		if len(f.Resources) > 1 { // a plan does not compare budgets
			return ""
		}
		if f.Reason == ReasonPDBBlocksEviction {
			return NewUID("pdb", of.Namespace, of.Name)
		}
		return NewUID("pdb", of.Namespace, of.Name, f.Reason)
	}
	return ""
}

// IsPlanUID reports whether PlanUID may return a UID.
func IsPlanUID(uid string) bool {
	kind, _, _ := strings.Cut(uid, "/")
	return slices.Contains([]string{"version", "operator", "pool", "node", "alert", "pdb"}, kind)
}

// item returns the object and its details, for a message that lists several findings.
func (f *Finding) item() string {
	details := f.Description
	if details == "" {
		details = text.FormatSince(f.Since)
	}
	switch len(f.Resources) {
	case 0:
		return details
	case 1:
		return text.WithReason(f.Resources[0].String(), details)
	}
	names := make([]string, len(f.Resources))
	for i, r := range f.Resources {
		names[i] = r.String()
	}
	return text.WithReason(strings.Join(names, " and "), details)
}

// anyBlocks reports whether a finding blocks.
func anyBlocks(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Level.Blocks() })
}

// Message names every finding that blocks, grouped by summary, in the order of the findings.
func Message(findings []Finding) string { return joinFindings(findings, true) }

// joinFindings names the findings that block, or those that do not, grouped by summary.
func joinFindings(findings []Finding, blocking bool) string {
	var messages []string
	var items []string
	for i := range findings { // there may be thousands, of few summaries
		summary := findings[i].Summary
		listed := func(f Finding) bool { return f.Level.Blocks() == blocking && f.Summary == summary }
		if !listed(findings[i]) || slices.ContainsFunc(findings[:i], listed) {
			continue
		}
		if items == nil { // most reports have nothing to list
			items = make([]string, 0, len(findings)-i)
		}
		items = items[:0]
		for j := i; j < len(findings); j++ {
			if listed(findings[j]) {
				items = append(items, findings[j].item())
			}
		}
		if names := text.JoinInPlace(items); names != "" {
			summary += ": " + names
		}
		messages = append(messages, summary)
	}
	return strings.Join(messages, "; ")
}
