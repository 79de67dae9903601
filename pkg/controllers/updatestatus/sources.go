// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
)

// staleAfter is the maximum age of an informer's last answer while an update is in progress: two
// request intervals for a pending, inactive update.
const staleAfter = 4 * time.Minute

// sources returns the sources of the assessment other than facts: this controller, current because
// it is running, and the enabled informers. While no update is pending, informers are not queried,
// and their last answers stay current.
func sources(existing []updatev1beta1.UpdateInformer, answers []insight.Answer, pending bool, now time.Time) []updatev1beta1.Source {
	all := []updatev1beta1.Source{{Name: updatev1beta1.SourceStatusController, Current: true, ObservedTime: new(metav1.NewTime(now))}}
	for i := range existing {
		informer := &existing[i]
		if insight.IsBuiltIn(informer.Name) || !informer.IsEnabled() {
			continue
		}
		source := sourceOf(informer.Name, answers)
		if pending && source.Current && source.ObservedTime != nil && now.Sub(source.ObservedTime.Time) > staleAfter {
			source.Current, source.Message = false, "no answer since then"
		}
		all = append(all, source)
	}
	slices.SortFunc(all[1:], func(a, b updatev1beta1.Source) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// sourceOf describes an informer as a source.
func sourceOf(name string, answers []insight.Answer) updatev1beta1.Source {
	source := updatev1beta1.Source{Name: updatev1beta1.SourceInformerPrefix + name}
	i := slices.IndexFunc(answers, func(a insight.Answer) bool { return a.Informer == name })
	if i < 0 {
		source.Message = "not queried yet"
		return source
	}
	answer := answers[i]
	source.ObservedTime = new(metav1.NewTime(answer.At))
	switch answer.Result {
	case insight.NotQueried:
		source.Current, source.ObservedTime = true, nil
	case insight.Success:
		source.Current = true
	case insight.Failure, insight.Wait, insight.Unreachable, insight.Invalid, insight.Disabled, insight.Deleted:
		source.Message = answer.Message
		if source.Message == "" {
			source.Message = "the informer answered " + string(answer.Result)
		}
	}
	return source
}
