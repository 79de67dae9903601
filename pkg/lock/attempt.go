// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"encoding/json"
	"maps"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

// The annotations of a held Lease. Operators of the last release know all but the note. The text of the note
// names the holder and the attempt, so a note that such an operator left behind does not count.
const (
	annotationAttempt = "upgrade.managed.openshift.io/attempt"
	annotationVersion = "upgrade.managed.openshift.io/version"
	annotationType    = "upgrade.managed.openshift.io/type"

	annotationRequested = "upgrade.managed.openshift.io/requested"
	annotationNumber    = "upgrade.managed.openshift.io/attempt-number"
	annotationChannels  = "upgrade.managed.openshift.io/channels"
	annotationFormer    = "upgrade.managed.openshift.io/former-channel"

	annotationNote = "upgrade.managed.openshift.io/note"
)

// annotations lists them.
var annotations = []string{
	annotationAttempt, annotationVersion, annotationType, annotationRequested, annotationNumber, annotationChannels, annotationFormer, annotationNote,
}

// annotationContinues is the annotation with the note of an upgrade that has commenced and continues without
// its object.
const annotationContinues = "upgrade.managed.openshift.io/continues"

// maxNote bounds a note, in bytes. Longer notes are not written.
const maxNote = 4096

// NoImage is the noted image of a request for a version alone.
const NoImage = "none"

// Attempt identifies the attempt of a holder. It is zero for a Lease of an earlier release or of another
// client.
type Attempt struct {
	// Key identifies the attempt among the attempts of its object, for example the time of its start.
	Key string `json:"key,omitempty"`
	// Version is the target version, or empty if there is none.
	Version string `json:"version,omitempty"`
	// Type names the runbook.
	Type string `json:"type,omitempty"`
	// Requested reports that the update may have been requested from the cluster for this attempt.
	Requested bool `json:"requested,omitempty"`
	// Number is the number of the attempt among the attempts of its object, or 0 if it is not noted.
	Number int32 `json:"number,omitempty"`
	// Channels are the channels that the attempt has requested, separated by commas, and FormerChannel is the
	// channel before them. Without requested channels, there is no former channel to restore.
	Channels      string `json:"channels,omitempty"`
	FormerChannel string `json:"formerChannel,omitempty"`

	// Image is the requested image, NoImage for a version alone, or empty if it is not noted. RequestTime is the
	// time of the request.
	Image       string `json:"image,omitempty"`
	RequestTime string `json:"requestTime,omitempty"`
	// PrecedingVersion is the version that was installed before, and CommenceTime is when the upgrade
	// commenced.
	PrecedingVersion string `json:"precedingVersion,omitempty"`
	CommenceTime     string `json:"commenceTime,omitempty"`
	// Notified are the notified milestones, separated by commas.
	Notified string `json:"notified,omitempty"`
}

// note is an attempt with the identity of its holder.
type note struct {
	Holder string `json:"holder"`
	Attempt
}

// String returns the text of the annotation, or an empty string if it is too long.
func (n note) String() string {
	text, err := json.Marshal(n)
	if err != nil || len(text) > maxNote {
		return ""
	}
	return string(text)
}

// noteOf returns the note in an annotation, or zero.
func noteOf(lease *coordinationv1.Lease, annotation string) note {
	var n note
	if err := json.Unmarshal([]byte(lease.Annotations[annotation]), &n); err != nil {
		return note{}
	}
	return n
}

// Is reports whether both are the same attempt.
func (a Attempt) Is(other Attempt) bool {
	return a.Key == other.Key && a.Version == other.Version && a.Type == other.Type
}

// ofLastRelease returns the part of the attempt that a Lease of the last release notes.
func (a Attempt) ofLastRelease() Attempt {
	a.Image, a.RequestTime, a.PrecedingVersion, a.CommenceTime, a.Notified = "", "", "", "", ""
	return a
}

// fit drops what does not fit into the note.
func (a Attempt) fit(holder Holder) Attempt {
	if (note{holder.identity(), a}).String() == "" {
		return a.ofLastRelease()
	}
	return a
}

func (a Attempt) annotations(holder Holder) map[string]string {
	notes := map[string]string{annotationAttempt: a.Key, annotationVersion: a.Version, annotationType: a.Type, annotationChannels: a.Channels, annotationFormer: a.FormerChannel}
	if a.Requested {
		notes[annotationRequested] = "true"
	}
	if a.Number > 0 {
		notes[annotationNumber] = strconv.Itoa(int(a.Number))
	}
	if a != a.ofLastRelease() {
		notes[annotationNote] = note{holder.identity(), a}.String()
	}
	maps.DeleteFunc(notes, func(_, value string) bool { return value == "" })
	return notes
}

// AttemptOf returns the noted attempt of a Lease, or zero.
func AttemptOf(lease *coordinationv1.Lease) Attempt {
	number, err := strconv.ParseInt(lease.Annotations[annotationNumber], 10, 32)
	if err != nil {
		number = 0
	}
	attempt := Attempt{
		Key: lease.Annotations[annotationAttempt], Version: lease.Annotations[annotationVersion], Type: lease.Annotations[annotationType],
		Requested: lease.Annotations[annotationRequested] == "true", Number: max(0, int32(number)),
		Channels: lease.Annotations[annotationChannels], FormerChannel: lease.Annotations[annotationFormer],
	}
	if n := noteOf(lease, annotationNote); n.Holder == ptr.Deref(lease.Spec.HolderIdentity, "") && n.ofLastRelease() == attempt {
		return n.Attempt
	}
	return attempt
}
