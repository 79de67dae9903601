// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// ReasonForbidden is the reason for a hook whose Job is currently not allowed.
const ReasonForbidden = "Forbidden"

// Problem is the reason why a hook cannot run; the zero Problem if it can.
type Problem struct {
	Reason, Message string
	// Rejected reports that the API server rejects the Job, or that the Job uses a Secret of a
	// ServiceAccount. The policy or quota behind this may change without a change of the hook.
	Rejected bool
}

// Validate returns the problems of a hook that do not depend on the API server. The hook must
// include its template.
func (r *Runner) Validate(hook *maintenancev1beta1.UpgradeJobHook) Problem {
	_, problem := r.validate(hook)
	return problem
}

func (r *Runner) validate(hook *maintenancev1beta1.UpgradeJobHook) (*unstructured.Unstructured, Problem) {
	if _, err := selectorOf(hook); err != nil {
		return nil, Problem{Reason: ReasonInvalidSelector, Message: text.Reason("spec.selector: " + err.Error())}
	}
	job, err := template(hook, r.Config().ServiceAccounts)
	invalid := (*invalidError)(nil)
	switch {
	case errors.As(err, &invalid):
		return nil, Problem{Reason: invalid.reason, Message: invalid.message}
	case err != nil:
		return nil, Problem{Reason: ReasonInvalidTemplate, Message: text.Reason(err.Error())}
	}
	return job, Problem{}
}

// DryRun is like Validate, but also lets the API server validate the Job with a strict dry run. It
// returns an error if the API server has not decided.
func (r *Runner) DryRun(ctx context.Context, hook *maintenancev1beta1.UpgradeJobHook) (Problem, error) {
	job, problem := r.validate(hook)
	if problem != (Problem{}) {
		return problem, nil
	}
	addEnvironment(job, []variable{{"EVENT", `{}`}})
	job.SetNamespace(hook.Namespace)
	job.SetGenerateName("hook-")
	err := r.restrictSecrets(ctx, job)
	if invalid := (*invalidError)(nil); errors.As(err, &invalid) {
		return Problem{invalid.reason, invalid.message, true}, nil
	}
	if err != nil {
		return Problem{}, err
	}
	err = r.Client.Create(ctx, job, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	switch {
	case err == nil:
		return Problem{}, nil
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return Problem{ReasonInvalidTemplate, text.Reason("the API server rejects spec.template: " + err.Error()), true}, nil
	case apierrors.IsForbidden(err):
		return Problem{ReasonForbidden, text.Reason("the Job must not be created; change the quota, policy, or role that the API server names: " + err.Error()), true}, nil
	}
	return Problem{}, fmt.Errorf("validating the template of UpgradeJobHook %s: %w", hook.Name, err)
}
