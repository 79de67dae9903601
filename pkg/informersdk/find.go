// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informersdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Find returns all insights about the update that a request describes, or none if there is nothing
// to report. The fields of the request may be empty. If Find returns an error from Wait, the caller
// tries again after five seconds. All other errors are reported as failures of the informer,
// together with the returned insights; the caller then does not resolve missing insights.
type Find func(ctx context.Context, request hooksv1alpha.RequestSpec) ([]hooksv1alpha.Insight, error)

// Wait returns an error with which a Find reports that it is still acquiring data.
func Wait(message string) error { return &waitError{message} }

type waitError struct{ message string }

func (e *waitError) Error() string { return e.message }

// answer is the result of a Find.
type answer struct {
	insights []hooksv1alpha.Insight
	status   hooksv1alpha.ResponseStatus
}

// finder calls a Find.
type finder struct {
	find    Find
	timeout time.Duration
	clock   clock.PassiveClock
	log     logr.Logger
}

// answer calls the function and waits until the timeout. It calls release when the function has
// returned, possibly later.
func (f *finder) answer(ctx context.Context, request hooksv1alpha.RequestSpec, release func()) answer {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel() // not when the function returns, because its result would race with the end of the context
	found := make(chan answer, 1)
	go func() {
		defer release()
		found <- f.call(ctx, request)
	}()
	select {
	case a := <-found:
		return a
	case <-ctx.Done():
		return f.failure(nil, fmt.Errorf("the insights were not found within %s", f.timeout))
	}
}

func (f *finder) call(ctx context.Context, request hooksv1alpha.RequestSpec) (a answer) {
	defer func() {
		if r := recover(); r != nil {
			f.log.Error(fmt.Errorf("panic: %v", r), "The function of the informer panicked.", "stack", string(debug.Stack()))
			a = f.failure(nil, errors.New("the informer panicked; its log has the details"))
		}
	}()
	insights, err := f.find(ctx, request)
	insights, invalid := f.complete(insights)
	var wait *waitError
	switch {
	case errors.As(err, &wait) && invalid == nil:
		return answer{insights, hooksv1alpha.ResponseStatus{Response: hooksv1alpha.ResponseWait, Message: text.Sanitize(wait.message, maxMessageBytes)}}
	case err != nil || invalid != nil:
		return f.failure(insights, cmp.Or(err, invalid))
	}
	return answer{insights, hooksv1alpha.ResponseStatus{Response: hooksv1alpha.ResponseSuccess}}
}

// maxMessageBytes is the maximum size of the message of a failure or a wait.
const maxMessageBytes = 1024

// failureUID is the uid of the insight that reports a failure.
const failureUID = "informersdk/failure"

// failure returns an answer with an additional insight that explains the error.
func (f *finder) failure(insights []hooksv1alpha.Insight, err error) answer {
	message := text.Sanitize(err.Error(), maxMessageBytes)
	insights = append(insights, hooksv1alpha.Insight{
		UID:             failureUID,
		AcquisitionTime: f.now(),
		Scope:           updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane},
		Impact: updatev1beta1.InsightImpact{
			Level: updatev1beta1.LevelWarning, Type: "Unknown", Reason: updatev1beta1.ReasonInformerFailed,
			Summary: "An informer could not find all of its insights", Description: message,
		},
	})
	return answer{insights, hooksv1alpha.ResponseStatus{Response: hooksv1alpha.ResponseFailure, Message: message}}
}

func (f *finder) now() metav1.Time {
	return metav1.Time{Time: f.clock.Now().UTC().Truncate(time.Second)}
}

// complete returns the valid insights, with default times and truncated strings, and an error that
// names the first invalid one.
func (f *finder) complete(insights []hooksv1alpha.Insight) ([]hooksv1alpha.Insight, error) {
	valid := make([]hooksv1alpha.Insight, 0, len(insights))
	seen := map[string]bool{}
	var invalid error
	for i := range insights {
		in := insights[i]
		if err := check(&in, seen); err != nil {
			invalid = cmp.Or(invalid, fmt.Errorf("insight %d: %w", i, err))
			continue
		}
		if len(valid) == hooksv1alpha.MaxInsights-1 { // leave room for the explanation of a failure
			invalid = cmp.Or(invalid, fmt.Errorf("there are %d insights, more than %d: report one for several objects", len(insights), hooksv1alpha.MaxInsights-1))
			break
		}
		seen[in.UID] = true
		if in.AcquisitionTime.IsZero() {
			in.AcquisitionTime = f.now()
		}
		in.Impact.Summary = text.Fit(in.Impact.Summary, hooksv1alpha.MaxSummaryBytes)
		in.Impact.Description = text.Fit(in.Impact.Description, hooksv1alpha.MaxDescriptionBytes)
		valid = append(valid, in)
	}
	return valid, invalid
}

func check(in *hooksv1alpha.Insight, seen map[string]bool) error {
	switch {
	case in.UID == "":
		return errors.New("the uid is empty: derive it from what is wrong and with which object")
	case len(in.UID) > hooksv1alpha.MaxUIDBytes:
		return fmt.Errorf("uid %s has %d bytes, more than %d", text.Excerpt(in.UID), len(in.UID), hooksv1alpha.MaxUIDBytes)
	case seen[in.UID]:
		return fmt.Errorf("uid %s is used twice", text.Excerpt(in.UID))
	case !in.Impact.Level.Known():
		return fmt.Errorf("uid %s has level %q: use status, info, warning, error, or critical", text.Excerpt(in.UID), in.Impact.Level)
	case in.Scope.Type != updatev1beta1.ScopeControlPlane && in.Scope.Type != updatev1beta1.ScopeWorkerPool:
		return fmt.Errorf("uid %s has scope type %q: use ControlPlane or WorkerPool", text.Excerpt(in.UID), in.Scope.Type)
	case in.Impact.Summary == "":
		return fmt.Errorf("uid %s has no summary", text.Excerpt(in.UID))
	case len(in.Impact.Type) > hooksv1alpha.MaxWordBytes || len(in.Impact.Reason) > hooksv1alpha.MaxWordBytes:
		return fmt.Errorf("uid %s has a type or a reason of more than %d bytes", text.Excerpt(in.UID), hooksv1alpha.MaxWordBytes)
	case len(in.Scope.Resources) > hooksv1alpha.MaxReferences || len(in.Scope.WorkerPool) > hooksv1alpha.MaxReferences:
		return fmt.Errorf("uid %s has more than %d resources or pools: report several insights", text.Excerpt(in.UID), hooksv1alpha.MaxReferences)
	}
	return nil
}
