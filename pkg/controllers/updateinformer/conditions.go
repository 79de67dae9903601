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

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk/wire"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// reasonNotChecked is the reason for an informer that has not been queried yet.
const reasonNotChecked = "NotChecked"

// conditionTypes lists the conditions that report problems. An earlier one prevents the requests of
// the later ones.
var conditionTypes = []string{updatev1beta1.ConditionCABundleResolved, updatev1beta1.ConditionReachable, updatev1beta1.ConditionDiscovered}

// fineMessages holds the messages of conditions with status True.
var fineMessages = map[string]string{
	updatev1beta1.ConditionCABundleResolved: "the authorities of the informer are known",
	updatev1beta1.ConditionReachable:        "the informer answers",
	updatev1beta1.ConditionDiscovered:       "the informer has listed its handlers",
}

// explain returns the problem behind a failed request, with a message that names the fix.
func explain(informer *updatev1beta1.UpdateInformer, discovery bool, err error) *problem {
	ref := informer.Spec.ClientConfig.Service
	where := fmt.Sprintf("%s:%d", serverName(ref), informerPort(ref))
	detail := text.Reason(err.Error())
	var status *httpclient.StatusError
	var failure *tokenError
	switch {
	case errors.As(err, &failure):
		return newProblem(updatev1beta1.ConditionReachable, updatev1beta1.ReasonTokenRequestFailed,
			"the API server granted no token for the informer: %s; check the Role update-status-controller", detail)
	case httpclient.IsTLSError(err):
		return newProblem(updatev1beta1.ConditionReachable, updatev1beta1.ReasonTLSFailed,
			"%s; the certificate of the informer must be valid for %s and signed by the authorities in spec.clientConfig.caBundle, "+
				"in the annotated Secret, or of the service CA", detail, serverName(ref))
	case errors.Is(err, context.DeadlineExceeded):
		return newProblem(updatev1beta1.ConditionReachable, updatev1beta1.ReasonTimeout,
			"%s: no complete answer in time; check the pods of Service %s/%s, and the NetworkPolicies between them and the Update Status Controller",
			where, ref.Namespace, ref.Name)
	case errors.As(err, &status) && (status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden):
		return newProblem(updatev1beta1.ConditionReachable, updatev1beta1.ReasonRequestRejected,
			"%s; the informer must accept tokens for audience %s", detail, hooksv1alpha.Audience(ref.Namespace, ref.Name))
	case errors.Is(err, wire.ErrUnsupported):
		return newProblem(updatev1beta1.ConditionDiscovered, updatev1beta1.ReasonProtocolUnsupported,
			"%s; the informer must serve %s", detail, hooksv1alpha.DiscoveryPath)
	case errors.As(err, &status):
		return newProblem(updatev1beta1.ConditionReachable, updatev1beta1.ReasonRequestRejected, "%s; check the log of the informer", detail)
	case discovery && !isConnectionError(err):
		return newProblem(updatev1beta1.ConditionDiscovered, updatev1beta1.ReasonInvalidResponse, "%s; check %s of the informer", detail, hooksv1alpha.DiscoveryPath)
	default:
		return newProblem(updatev1beta1.ConditionReachable, updatev1beta1.ReasonConnectionFailed,
			"%s; check that Service %s/%s has ready endpoints", detail, ref.Namespace, ref.Name)
	}
}

// isConnectionError reports whether a request got no response or an error status.
func isConnectionError(err error) bool {
	var failure *requestError
	return errors.As(err, &failure)
}

// Outcomes of requests in metrics, in addition to the outcomes of the protocol.
const (
	outcomeInvalid     = "Invalid"
	outcomeUnreachable = "Unreachable"
	outcomeRejected    = "Rejected"
)

// outcome returns the outcome of a discovery or of a failed request.
func outcome(err error) string {
	var status *httpclient.StatusError
	switch {
	case err == nil:
		return string(hooksv1alpha.ResponseSuccess)
	case errors.As(err, &status):
		return outcomeRejected
	case isConnectionError(err):
		return outcomeUnreachable
	default:
		return outcomeInvalid
	}
}

// describe combines a reason and a message of another client for use in a message.
func describe(reason, message string) string {
	if message == "" {
		return text.Reason(reason)
	}
	return text.Sanitize(reason, text.MaxReason) + ": " + text.Reason(message)
}

// publish writes the conditions if they have changed.
func (p *pass) publish(ctx context.Context) error {
	p.Metrics.SetInformerReachable(p.informer.Name, p.problem() == nil && p.checked[updatev1beta1.ConditionDiscovered])
	return p.patch(ctx, func(status *updatev1beta1.UpdateInformerStatus) {
		for _, condition := range conditionTypes {
			c := updatev1beta1.InformerCondition{
				Type: condition, Status: metav1.ConditionTrue, Reason: updatev1beta1.ReasonAsExpected, Message: fineMessages[condition],
			}
			switch found := p.problems[condition]; {
			case found != nil:
				c.Status, c.Reason, c.Message = metav1.ConditionFalse, found.reason, found.message
			case !p.checked[condition]:
				continue
			}
			setCondition(status, c, metav1.NewTime(p.now))
		}
		p.setReadiness(status)
		if p.discoveredAt.IsZero() {
			return
		}
		status.Handlers = p.handlers
	})
}

// publishDisabled sets the conditions of a disabled informer to Unknown.
func (p *pass) publishDisabled(ctx context.Context) error {
	return p.patch(ctx, func(status *updatev1beta1.UpdateInformerStatus) {
		for _, condition := range conditionTypes {
			setCondition(status, updatev1beta1.InformerCondition{
				Type: condition, Status: metav1.ConditionUnknown, Reason: updatev1beta1.ReasonDisabled, Message: "the informer is disabled: it is not queried",
			}, metav1.NewTime(p.now))
		}
		p.show(status, readiness.Verdict{Level: readiness.Ready, Reason: updatev1beta1.ReasonDisabled, Message: "the informer is disabled: it is not queried"})
	})
}

// setReadiness sets the readiness of the informer for tools that do not know informers. The
// informer is ready once it has answered without a problem. Until then it is reconciling, because
// it is queried again and again.
func (p *pass) setReadiness(status *updatev1beta1.UpdateInformerStatus) {
	verdict := readiness.Verdict{Level: readiness.Ready, Reason: updatev1beta1.ReasonAsExpected, Message: fineMessages[updatev1beta1.ConditionReachable]}
	for _, name := range conditionTypes {
		i := slices.IndexFunc(status.Conditions, func(c updatev1beta1.InformerCondition) bool { return c.Type == name })
		switch {
		case i < 0 || status.Conditions[i].Status == metav1.ConditionUnknown:
			verdict = readiness.Verdict{Level: readiness.Reconciling, Reason: reasonNotChecked, Message: "the informer has not been queried yet"}
		case status.Conditions[i].Status == metav1.ConditionFalse:
			p.show(status, readiness.Verdict{Level: readiness.Reconciling, Reason: status.Conditions[i].Reason, Message: status.Conditions[i].Message})
			return
		}
	}
	p.show(status, verdict)
}

func (p *pass) show(status *updatev1beta1.UpdateInformerStatus, verdict readiness.Verdict) {
	for _, c := range verdict.Conditions() {
		if c.Status == "" {
			status.Conditions = slices.DeleteFunc(status.Conditions, func(other updatev1beta1.InformerCondition) bool { return other.Type == c.Type })
			continue
		}
		setCondition(status, updatev1beta1.InformerCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}, metav1.NewTime(p.now))
	}
}

// setCondition adds or replaces a condition. Its transition time changes with its status.
func setCondition(status *updatev1beta1.UpdateInformerStatus, c updatev1beta1.InformerCondition, now metav1.Time) {
	c.LastTransitionTime = now
	i := slices.IndexFunc(status.Conditions, func(other updatev1beta1.InformerCondition) bool { return other.Type == c.Type })
	if i < 0 {
		status.Conditions = append(status.Conditions, c)
		return
	}
	if status.Conditions[i].Status == c.Status {
		c.LastTransitionTime = status.Conditions[i].LastTransitionTime
	}
	status.Conditions[i] = c
}

// patch writes the status if it has changed. A new contact time alone does not count as a change.
func (p *pass) patch(ctx context.Context, change func(*updatev1beta1.UpdateInformerStatus)) error {
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
		return nil // a change of the object triggers the next pass
	}
	if err != nil {
		return fmt.Errorf("updating the status of UpdateInformer %s: %w", p.informer.Name, err)
	}
	return nil
}
