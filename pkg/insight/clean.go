// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Size limits of one insight, in bytes.
const (
	MaxUID         = hooksv1alpha.MaxUIDBytes
	MaxSummary     = hooksv1alpha.MaxSummaryBytes
	MaxDescription = hooksv1alpha.MaxDescriptionBytes

	maxReference = 1024
	maxWord      = hooksv1alpha.MaxWordBytes
	maxLevel     = 64
	maxFinish    = 64
)

// MaxResources limits the pools and the resources of one insight.
const MaxResources = hooksv1alpha.MaxReferences

const (
	// skew is the tolerated difference between the clocks of an informer and the controller.
	skew = hooksv1alpha.MaxAheadSeconds * time.Second
	// maxAge is the maximum plausible age of an acquisition time.
	maxAge = 366 * 24 * time.Hour
	// maxFinishIn limits how far in the future the estimated finish of an insight may be.
	maxFinishIn = 14 * 24 * time.Hour
)

// noSummary replaces a missing summary.
const noSummary = "The informer gives no summary."

// Clean returns an insight that is safe to publish: limited in size, in printable characters, with plausible
// times, and with its UUID. It removes fields that only the controller sets, such as the time of first
// observation. An unknown level becomes a warning, and the reported level is kept in a separate field.
func Clean(informer string, reported updatev1beta1.Insight, at time.Time) updatev1beta1.Insight {
	cleaned := updatev1beta1.Insight{
		AcquisitionTime: metav1.NewTime(at),
		Scope: updatev1beta1.InsightScope{
			Type: cleanScope(reported.Scope), WorkerPool: cleanRefs(reported.Scope.WorkerPool), Resources: cleanRefs(reported.Scope.Resources),
		},
		Impact: updatev1beta1.InsightImpact{
			Type: line(reported.Impact.Type, maxWord), Reason: word(reported.Impact.Reason),
			Summary: line(reported.Impact.Summary, MaxSummary), Description: lines(reported.Impact.Description, MaxDescription),
		},
		Remediation: updatev1beta1.InsightRemediation{Reference: cleanURL(reported.Remediation.Reference)},
	}
	if acquired := reported.AcquisitionTime.Time; isPlausible(acquired, at) {
		cleaned.AcquisitionTime = metav1.NewTime(acquired.UTC().Truncate(time.Second))
	}
	var known bool
	if cleaned.Impact.Level, known = cleanLevel(reported.Impact.Level); !known {
		cleaned.Impact.ReportedLevel = line(string(reported.Impact.Level), maxLevel)
	}
	if cleaned.Impact.Summary == "" {
		cleaned.Impact.Summary = noSummary
	}
	if reported.Remediation.Resolved != nil {
		cleaned.Remediation.Resolved = new(*reported.Remediation.Resolved)
	}
	cleaned.Remediation.EstimatedFinish = cleanFinish(&reported.Remediation, cleaned.AcquisitionTime.Time, at)
	cleaned.UID = cleanUID(reported.UID, cleaned)
	cleaned.UUID = UUID(informer, cleaned.Scope, cleaned.UID)
	return cleaned
}

// isPlausible reports whether an informer may have acquired data at the given time.
func isPlausible(acquired, at time.Time) bool {
	return !acquired.IsZero() && !acquired.After(at.Add(skew)) && acquired.After(at.Add(-maxAge))
}

// cleanUID returns the uid. A missing or overlong uid is replaced by a hash, so the insight is still shown.
func cleanUID(reported string, cleaned updatev1beta1.Insight) string {
	const hashBytes = 8
	hashed := func(of string) string { return text.Hash(of, hashBytes) }
	uid := line(reported, len(reported))
	switch {
	case uid == "":
		return "no-uid-" + hashed(cleaned.Impact.Reason+"\n"+cleaned.Impact.Summary)
	case len(uid) > MaxUID:
		return text.Cut(uid, MaxUID-2*hashBytes-1) + "-" + hashed(reported)
	}
	return uid
}

func cleanScope(scope updatev1beta1.InsightScope) updatev1beta1.ScopeType {
	switch {
	case scope.Type == updatev1beta1.ScopeControlPlane || scope.Type == updatev1beta1.ScopeWorkerPool:
		return scope.Type
	case len(scope.WorkerPool) > 0:
		return updatev1beta1.ScopeWorkerPool
	}
	return updatev1beta1.ScopeControlPlane
}

// Size limits of an object reference, as in the API.
const (
	maxAPIVersion = 317
	maxLabel      = 63
	maxName       = 253
)

// cleanRefs returns up to MaxResources of the references, sorted.
func cleanRefs(refs []updatev1beta1.ResourceReference) []updatev1beta1.ResourceReference {
	var cleaned []updatev1beta1.ResourceReference
	for _, ref := range refs {
		c := updatev1beta1.ResourceReference{
			APIVersion: identifier(ref.APIVersion, maxAPIVersion), Kind: identifier(ref.Kind, maxLabel),
			Namespace: identifier(ref.Namespace, maxLabel), Name: identifier(ref.Name, maxName),
		}
		if c.Kind != "" || c.Name != "" {
			cleaned = append(cleaned, c)
		}
	}
	cleaned = sortedRefs(cleaned)
	return slices.Clip(cleaned[:min(len(cleaned), MaxResources)])
}

// identifier replaces characters that are not valid in object names, because names end up in commands that
// users copy and paste.
func identifier(reported string, maxBytes int) string {
	return text.Cut(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-._:/", r):
			return r
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return '?'
	}, text.Truncate(reported, 4*maxBytes)), maxBytes)
}

// word returns a reason reduced to letters, digits, and underscores.
func word(reported string) string {
	return text.Cut(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return -1
	}, text.Truncate(reported, 4*maxWord)), maxWord)
}

// escapeSequence matches ANSI escape sequences, which control the terminal.
var escapeSequence = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\u009b[0-?]*[ -/]*[@-~]")

// line returns a text as a single line of at most maxBytes bytes.
func line(reported string, maxBytes int) string {
	reported = strings.ToValidUTF8(cutInput(reported, maxBytes), "")
	if strings.ContainsFunc(reported, func(r rune) bool { return r < ' ' || r > '~' }) {
		reported = invisible(escapeSequence.ReplaceAllString(reported, ""))
	}
	reported = text.Redact(reported)
	return text.Fit(text.Sanitize(reported, len(reported)), maxBytes)
}

// lines returns a multi-line text of at most maxBytes bytes in total.
func lines(reported string, maxBytes int) string {
	reported = text.Redact(strings.ToValidUTF8(cutInput(reported, maxBytes), ""))
	var cleaned []string
	for part := range strings.SplitSeq(strings.ReplaceAll(reported, "\r\n", "\n"), "\n") {
		cleaned = append(cleaned, line(part, len(part)))
	}
	return text.Fit(strings.TrimSpace(strings.Join(slices.Compact(cleaned), "\n")), maxBytes)
}

// cutInput limits the size of a text before cleaning. The limit is generous because cleaning may remove most
// of the text.
func cutInput(reported string, maxBytes int) string { return text.Cut(reported, 8*maxBytes) }

// invisible removes zero-width characters and characters that change the text direction.
func invisible(reported string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) || r == '\u034f' || r == '\u115f' || r == '\u3164' {
			return -1
		}
		return r
	}, reported)
}

// cleanURL returns a plain https URL, or "" for anything else.
func cleanURL(reported string) string {
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'<>\\^`{|}", r) }
	if reported == "" || len(reported) > maxReference || strings.ContainsFunc(reported, odd) {
		return ""
	}
	parsed, err := url.Parse(reported)
	if err != nil || parsed.Scheme != "https" || parsed.Hostname() == "" || parsed.User != nil || parsed.Opaque != "" {
		return ""
	}
	return reported
}

// cleanFinish returns the estimated finish if it is a plausible time or duration, and "" otherwise.
func cleanFinish(reported *updatev1beta1.InsightRemediation, acquired, at time.Time) string {
	if len(reported.EstimatedFinish) > maxFinish || strings.HasPrefix(reported.EstimatedFinish, "-") {
		return ""
	}
	finish, ok := reported.Finish(acquired)
	if !ok || finish.After(at.Add(maxFinishIn)) || finish.Before(at.Add(-maxAge)) {
		return ""
	}
	return reported.EstimatedFinish
}

// cleanLevel returns the reported level. For an unknown level it returns warning and false.
func cleanLevel(reported updatev1beta1.Level) (updatev1beta1.Level, bool) {
	level := updatev1beta1.Level(strings.ToLower(strings.TrimSpace(string(reported))))
	if level.Known() {
		return level, true
	}
	return updatev1beta1.LevelWarning, false
}
