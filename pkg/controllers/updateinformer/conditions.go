// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// conditionTypes are the conditions that this controller writes, in the order in which their problems
// prevent requests.
var conditionTypes = []string{v1beta1.ConditionCABundleResolved, v1beta1.ConditionReachable, v1beta1.ConditionDiscovered}

// fineMessages are the messages of conditions that are True.
var fineMessages = map[string]string{
	v1beta1.ConditionCABundleResolved: "the authorities of the informer are known",
	v1beta1.ConditionReachable:        "the informer answers",
	v1beta1.ConditionDiscovered:       "the informer has listed its handlers",
}

// explain returns the condition that reports a failed request, with a message that names the fix.
func explain(informer *v1beta1.UpdateInformer, discovery bool, err error) *problem {
	ref := informer.Spec.ClientConfig.Service
	where := fmt.Sprintf("%s:%d", serverName(ref), informerPort(ref))
	detail := text.Reason(err.Error())
	var status *httpclient.StatusError
	var failure *tokenError
	switch {
	case errors.As(err, &failure):
		return newProblem(v1beta1.ConditionReachable, v1beta1.ReasonTokenRequestFailed,
			"the API server granted no token for the informer: %s; check the Role update-status-controller", detail)
	case httpclient.IsTLSError(err):
		return newProblem(v1beta1.ConditionReachable, v1beta1.ReasonTLSFailed,
			"%s; the certificate of the informer must be valid for %s and signed by the authorities in spec.clientConfig.caBundle, "+
				"in the annotated Secret, or of the service CA", detail, serverName(ref))
	case errors.Is(err, context.DeadlineExceeded):
		return newProblem(v1beta1.ConditionReachable, v1beta1.ReasonTimeout,
			"%s: no complete answer in time; check the pods of Service %s/%s, and the NetworkPolicies between them and the Update Status Controller",
			where, ref.Namespace, ref.Name)
	case errors.As(err, &status) && (status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden):
		return newProblem(v1beta1.ConditionReachable, v1beta1.ReasonRequestRejected,
			"%s; the informer must accept tokens for audience %s", detail, v1alpha.Audience(ref.Namespace, ref.Name))
	case errors.Is(err, errUnsupported):
		return newProblem(v1beta1.ConditionDiscovered, v1beta1.ReasonProtocolUnsupported,
			"%s; the informer must serve %s", detail, v1alpha.DiscoveryPath)
	case errors.As(err, &status):
		return newProblem(v1beta1.ConditionReachable, v1beta1.ReasonRequestRejected, "%s; check the log of the informer", detail)
	case discovery && !isConnectionError(err):
		return newProblem(v1beta1.ConditionDiscovered, v1beta1.ReasonInvalidResponse, "%s; check %s of the informer", detail, v1alpha.DiscoveryPath)
	default:
		return newProblem(v1beta1.ConditionReachable, v1beta1.ReasonConnectionFailed,
			"%s; check that Service %s/%s has ready endpoints", detail, ref.Namespace, ref.Name)
	}
}

// isConnectionError reports whether the informer did not answer a request, or not with success.
func isConnectionError(err error) bool {
	var failure *requestError
	return errors.As(err, &failure)
}

// The outcomes of requests in metrics, beside those of the protocol.
const (
	outcomeInvalid     = "Invalid"
	outcomeUnreachable = "Unreachable"
	outcomeRejected    = "Rejected"
)

// outcome returns the outcome of a discovery, or of a request that failed.
func outcome(err error) string {
	var status *httpclient.StatusError
	switch {
	case err == nil:
		return string(v1alpha.ResponseSuccess)
	case errors.As(err, &status):
		return outcomeRejected
	case isConnectionError(err):
		return outcomeUnreachable
	default:
		return outcomeInvalid
	}
}

// describe returns a reason and a message of others for a message.
func describe(reason, message string) string {
	if message == "" {
		return text.Reason(reason)
	}
	return text.Sanitize(reason, text.MaxReason) + ": " + text.Reason(message)
}

// publish writes the conditions, if they changed.
func (p *pass) publish(ctx context.Context) error {
	p.Metrics.SetInformerReachable(p.informer.Name, p.problem() == nil && p.checked[v1beta1.ConditionDiscovered])
	return p.patch(ctx, func(status *v1beta1.UpdateInformerStatus) {
		for _, condition := range conditionTypes {
			c := v1beta1.InformerCondition{
				Type: condition, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonAsExpected, Message: fineMessages[condition],
			}
			switch found := p.problems[condition]; {
			case found != nil:
				c.Status, c.Reason, c.Message = metav1.ConditionFalse, found.reason, found.message
			case !p.checked[condition]:
				continue
			}
			setCondition(status, c, metav1.NewTime(p.now))
		}
		if p.discoveredAt.IsZero() {
			return
		}
		status.Handlers = p.handlers
	})
}

// publishDisabled writes that nothing is known of an informer that is disabled.
func (p *pass) publishDisabled(ctx context.Context) error {
	return p.patch(ctx, func(status *v1beta1.UpdateInformerStatus) {
		for _, condition := range conditionTypes {
			setCondition(status, v1beta1.InformerCondition{
				Type: condition, Status: metav1.ConditionUnknown, Reason: v1beta1.ReasonDisabled, Message: "the informer is disabled: it is not queried",
			}, metav1.NewTime(p.now))
		}
	})
}

// setCondition adds or replaces a condition. Its transition time changes with its status.
func setCondition(status *v1beta1.UpdateInformerStatus, c v1beta1.InformerCondition, now metav1.Time) {
	c.LastTransitionTime = now
	i := slices.IndexFunc(status.Conditions, func(other v1beta1.InformerCondition) bool { return other.Type == c.Type })
	if i < 0 {
		status.Conditions = append(status.Conditions, c)
		return
	}
	if status.Conditions[i].Status == c.Status {
		c.LastTransitionTime = status.Conditions[i].LastTransitionTime
	}
	status.Conditions[i] = c
}

// patch writes a changed status. The time of the last contact alone is no change.
func (p *pass) patch(ctx context.Context, change func(*v1beta1.UpdateInformerStatus)) error {
	updated := p.informer.DeepCopy()
	change(&updated.Status)
	if equality.Semantic.DeepEqual(p.informer.Status, updated.Status) {
		return nil
	}
	if !p.contactTime.IsZero() {
		updated.Status.LastContactTime = new(metav1.NewTime(p.contactTime))
	}
	err := p.Client.Status().Patch(ctx, updated, client.MergeFromWithOptions(p.informer, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // a change of the object causes the next pass
	}
	if err != nil {
		return fmt.Errorf("updating the status of UpdateInformer %s: %w", p.informer.Name, err)
	}
	return nil
}
