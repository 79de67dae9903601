// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk/wire"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// state is the state of an informer between passes. Only one pass at a time uses it.
type state struct {
	uid        types.UID
	generation int64
	annotation string

	connection *connection
	// ca is the CA bundle, last resolved at caReadAt; zero if resolving it is due.
	ca       string
	caReadAt time.Time
	// handlers were discovered at discoveredAt; zero if a discovery is due.
	handlers     []updatev1beta1.InformerHandler
	discoveredAt time.Time
	breaker      breaker
	failing      string // the handler that failed last; empty if none did
	lost         bool   // an Event has reported that the informer does not answer

	pollAt       time.Time // when the next request is due
	waitingSince time.Time // for an informer that answers Wait
	recheck      bool      // the last request failed, so another one is due even without a pending update

	// problems holds the reasons why the informer is unusable, by condition. A condition without a
	// problem is fine if it was checked, and unknown otherwise.
	problems    map[string]*problem
	checked     map[string]bool
	contactTime time.Time
}

func newState(informer *updatev1beta1.UpdateInformer) *state {
	s := &state{uid: informer.UID, problems: map[string]*problem{}, checked: map[string]bool{}}
	for i := range informer.Status.Conditions {
		if c := informer.Status.Conditions[i]; c.Type == updatev1beta1.ConditionReachable && c.Status == metav1.ConditionFalse {
			s.lost = true // reported before a restart
		}
	}
	return s
}

// close closes the connection. It accepts a nil state.
func (s *state) close() {
	if s != nil && s.connection != nil {
		s.connection.close()
		s.connection = nil
	}
}

// set stores the result of the check behind a condition; nil if it passed.
func (s *state) set(condition string, p *problem) {
	s.checked[condition] = true
	delete(s.problems, condition)
	if p != nil {
		s.problems[condition] = p
	}
}

// pass is one pass over an informer.
type pass struct {
	*Reconciler
	*state

	informer *updatev1beta1.UpdateInformer
	now      time.Time
	interval time.Duration // between requests about the update in progress; 0 if none are needed
	asks     []openAsk
}

// disable stops the requests to an informer.
func (p *pass) disable(ctx context.Context) error {
	p.close()
	p.dropInformer(p.informer.Name)
	p.Metrics.DeleteInformer(p.informer.Name)
	*p.state = *newState(p.informer)
	if last, known := p.answer(p.informer.Name); !known || last.Result != insight.Disabled {
		p.setAnswer(insight.Answer{Informer: p.informer.Name, Result: insight.Disabled, Message: "the informer is disabled", At: p.now})
	}
	return p.publishDisabled(ctx)
}

// query makes the requests that are due.
func (p *pass) query(ctx context.Context) error {
	var list updatev1beta1.UpdateStatusList // a Get would copy it
	if err := p.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("reading the UpdateStatus: %w", err)
	}
	for i := range list.Items {
		p.interval = pollInterval(list.Items[i].Status, p.informer.Name, p.now)
	}
	p.asks = p.openAsks(p.informer.Name)
	if p.interval > 0 && (p.pollAt.IsZero() || p.pollAt.Sub(p.now) > p.interval) {
		p.pollAt = p.now // an update has started
	}
	ready, err := p.resolve(ctx)
	if err != nil {
		return err
	}
	if !ready || p.now.Before(p.breaker.retryAt) {
		p.answerUnavailable()
		return nil
	}
	if p.discoveryDue() && !p.discover(ctx) {
		p.answerUnavailable()
		return nil
	}
	p.pollStatus(ctx)
	p.pollPlans(ctx)
	return nil
}

// inUse reports whether the informer is queried.
func (p *pass) inUse() bool { return p.interval > 0 || len(p.asks) > 0 || p.recheck }

// resolve finds the address and the CA bundle of the informer, and reports whether it found both.
// Objects that are not cached are read when the informer has changed. While the informer is in use,
// they are also read once between discoveries and after a failed handshake.
func (p *pass) resolve(ctx context.Context) (bool, error) {
	ref, annotation := p.informer.Spec.ClientConfig.Service, p.informer.Annotations[updatev1beta1.InjectCAAnnotation]
	if p.generation != p.informer.Generation || p.annotation != annotation {
		p.generation, p.annotation, p.caReadAt = p.informer.Generation, annotation, time.Time{}
	}
	address, addressProblem, err := resolveAddress(ctx, p.Client, ref)
	if err != nil {
		return false, err
	}
	if addressProblem != nil {
		p.close()
		p.breaker = breaker{}
		p.discoveredAt = time.Time{}
		p.set(updatev1beta1.ConditionReachable, addressProblem)
	}
	t := target{address: address, serverName: serverName(ref), port: informerPort(ref), audience: hooksv1alpha.Audience(ref.Namespace, ref.Name)}
	if p.caDue() {
		ca, caProblem, err := p.resolveCA(ctx, p.informer)
		if err != nil {
			return false, err
		}
		p.caReadAt, p.ca = p.now, string(ca)
		p.set(updatev1beta1.ConditionCABundleResolved, caProblem)
	}
	caProblem := p.problems[updatev1beta1.ConditionCABundleResolved]
	if caProblem != nil {
		p.close() // the connection trusts an outdated CA bundle
	}
	if addressProblem != nil || caProblem != nil {
		return false, nil
	}
	t.ca = p.ca
	if p.connection != nil && p.connection.target == t {
		return true, nil
	}
	p.close()
	p.breaker, p.failing, p.discoveredAt = breaker{}, "", time.Time{}
	p.connection, err = connect(t, p.Token)
	return err == nil, err
}

// caDue reports whether the CA bundle must be read now.
func (p *pass) caDue() bool {
	if p.caReadAt.IsZero() || p.connection == nil {
		return p.caReadAt.IsZero() || p.now.Sub(p.caReadAt) >= pollActive || p.now.Before(p.caReadAt)
	}
	failed := p.problems[updatev1beta1.ConditionReachable] != nil
	if failed && p.problems[updatev1beta1.ConditionReachable].reason == updatev1beta1.ReasonTLSFailed {
		return !p.now.Before(p.breaker.retryAt)
	}
	return p.inUse() && p.discoveryDue()
}

// discoveryDue reports whether the informer must list its handlers.
func (p *pass) discoveryDue() bool {
	age := p.now.Sub(p.discoveredAt)
	return p.discoveredAt.IsZero() || age < 0 || p.inUse() && age >= discoveryInterval
}

// handlerDiscovery is the name of the discovery in metrics and states.
const handlerDiscovery = "discovery"

// discover requests the handlers of the informer.
func (p *pass) discover(ctx context.Context) bool {
	handlers, err := p.connection.discover(ctx)
	p.Metrics.ObserveInformerRequest(p.informer.Name, handlerDiscovery, outcome(err))
	if err != nil {
		p.fail(ctx, handlerDiscovery, err)
		return false
	}
	p.handlers, p.discoveredAt = handlers, p.now
	p.set(updatev1beta1.ConditionDiscovered, nil)
	p.succeed(ctx, handlerDiscovery)
	return true
}

// handler returns a handler of the informer.
func (p *pass) handler(name string) (updatev1beta1.InformerHandler, bool) {
	i := slices.IndexFunc(p.handlers, func(h updatev1beta1.InformerHandler) bool { return h.Name == name })
	if i < 0 {
		return updatev1beta1.InformerHandler{}, false
	}
	return p.handlers[i], true
}

// pollStatus requests insights about the update in progress if they are due.
func (p *pass) pollStatus(ctx context.Context) {
	handler, reports := p.handler(hooksv1alpha.HandlerStatus)
	last, _ := p.answer(p.informer.Name)
	switch {
	case !reports:
		p.answerNotQueried(last)
		p.recheck = false
		if p.failing == hooksv1alpha.HandlerStatus {
			p.succeed(ctx, hooksv1alpha.HandlerStatus)
		}
		return
	case p.interval == 0 && !p.recheck:
		p.pollAt, p.waitingSince = time.Time{}, time.Time{}
		if last.Result != insight.Success {
			p.answerNotQueried(last)
		}
		return
	case p.now.Before(p.pollAt):
		return
	}
	spec, err := p.Request(ctx)
	if err != nil {
		p.pollAt = p.now.Add(waitInterval) // the ClusterVersion is not in the cache
		return
	}
	answer, ok := p.ask(ctx, handler, hooksv1alpha.UpdateInsightsResponseKind, spec)
	if !ok {
		p.answerUnavailable()
		return
	}
	p.recheck = false
	p.pollAt = p.now.Add(p.interval)
	switch {
	case answer.Result != insight.Wait:
		p.waitingSince = time.Time{}
	case p.waitingSince.IsZero():
		p.waitingSince = p.now
		fallthrough
	case p.now.Sub(p.waitingSince) < waitLimitStatus:
		p.pollAt = p.now.Add(waitInterval)
	}
	if p.interval == 0 && answer.Result != insight.Success {
		p.answerNotQueried(last)
		return
	}
	p.setAnswer(answer)
}

// answerNotQueried replaces the last answer of a usable informer that is not queried. Otherwise, the
// informer would count as disabled, failing, or waiting until the next update.
func (p *pass) answerNotQueried(last insight.Answer) {
	if last.Result != insight.NotQueried {
		p.setAnswer(insight.Answer{Informer: p.informer.Name, Result: insight.NotQueried, At: p.now})
	}
}

// pollPlans requests insights for plans if they are due.
func (p *pass) pollPlans(ctx context.Context) {
	handler, analyzes := p.handler(hooksv1alpha.HandlerPlan)
	for i := range p.asks {
		open := &p.asks[i]
		switch {
		case p.now.Before(open.ask.nextAt) && !open.ask.unavailable:
			continue
		case !analyzes:
			open.ask.settle(insight.Answer{Informer: p.informer.Name, Result: insight.NotQueried, At: p.now, Degraded: p.degraded()}, p.now)
		case p.Clock.Since(p.now)+callTimeout(handler) > passTimeout:
			return // the next pass continues from here
		default:
			answer, ok := p.ask(ctx, handler, hooksv1alpha.UpdatePlanInsightsResponseKind, open.request.Spec)
			if !ok {
				p.answerUnavailable()
				return
			}
			p.settlePlan(open, answer)
		}
		p.setAsk(p.informer.Name, *open)
	}
}

// settlePlan stores the answer to a plan. An informer that answers Wait for too long gets that as
// its final answer.
func (p *pass) settlePlan(open *openAsk, answer insight.Answer) {
	if answer.Result == insight.Wait {
		if open.ask.waitingSince.IsZero() {
			open.ask.waitingSince = p.now
		}
		open.ask.nextAt = p.now.Add(waitInterval)
		if p.now.Sub(open.ask.waitingSince) < waitLimitPlan {
			return
		}
	}
	open.ask.settle(answer, p.now)
}

// ask makes one request. It returns false if the informer is unusable.
func (p *pass) ask(ctx context.Context, handler updatev1beta1.InformerHandler, kind string, spec hooksv1alpha.RequestSpec) (insight.Answer, bool) {
	body, err := p.connection.ask(ctx, handler, spec)
	if isConnectionError(err) {
		p.Metrics.ObserveInformerRequest(p.informer.Name, handler.Name, outcome(err))
		p.fail(ctx, handler.Name, err)
		return insight.Answer{}, false
	}
	p.succeed(ctx, handler.Name)
	answer := insight.Answer{Informer: p.informer.Name, At: p.now, Degraded: p.degraded()}
	var status hooksv1alpha.ResponseStatus
	var insights []hooksv1alpha.Insight
	if err == nil {
		status, insights, err = wire.DecodeInsights(kind, body)
	}
	if err != nil {
		p.Metrics.ObserveInformerRequest(p.informer.Name, handler.Name, outcomeInvalid)
		answer.Result, answer.Reason, answer.Message = insight.Invalid, updatev1beta1.ReasonInvalidResponse, text.Excerpt(text.Redact(err.Error()))
		return answer, true
	}
	p.Metrics.ObserveInformerRequest(p.informer.Name, handler.Name, string(status.Response))
	answer.Result, answer.Message = insight.Result(status.Response), status.Message
	for _, i := range insights {
		answer.Insights = append(answer.Insights, updatev1beta1.Insight{
			UID: i.UID, AcquisitionTime: i.AcquisitionTime, Scope: i.Scope, Impact: i.Impact, Remediation: i.Remediation,
		})
	}
	return answer, true
}

// succeed records a successful answer of a handler. While the informer fails to answer about the
// update in progress, answers of other handlers change nothing.
func (p *pass) succeed(ctx context.Context, handler string) {
	p.contactTime = p.now
	if p.failing == hooksv1alpha.HandlerStatus && handler != hooksv1alpha.HandlerStatus {
		return
	}
	p.failing = ""
	p.breaker.succeed()
	p.set(updatev1beta1.ConditionReachable, nil)
	if p.lost {
		p.lost = false
		p.Events.Publish(ctx, p.informer, corev1.EventTypeNormal, "InformerBack", "the update informer answers again")
	}
}

// fail records a failed request.
func (p *pass) fail(ctx context.Context, handler string, err error) {
	found := explain(p.informer, handler == handlerDiscovery, err)
	var failure *tokenError
	if errors.As(err, &failure) { // not the informer's fault
		p.breaker.retryAt = p.now.Add(waitInterval)
	} else {
		p.breaker.fail(p.informer.Name, p.now)
	}
	p.set(found.condition, found)
	if found.condition == updatev1beta1.ConditionDiscovered { // the informer has answered
		p.set(updatev1beta1.ConditionReachable, nil)
	}
	p.failing = handler
	switch handler {
	case hooksv1alpha.HandlerStatus:
		p.recheck = true
	case hooksv1alpha.HandlerPlan: // a discovery shows when the informer answers again
		p.discoveredAt = time.Time{}
	}
	if p.breaker.isOpen() && !p.lost {
		p.lost = true
		p.Events.Publish(ctx, p.informer, corev1.EventTypeWarning, "InformerLost", "the update informer does not answer: "+found.message)
	}
}

// answerUnavailable stores the answers of an unusable informer: about the update in progress, if
// one is pending, and for plans, after a few attempts.
func (p *pass) answerUnavailable() {
	found := p.problem()
	if found == nil {
		return
	}
	answer := insight.Answer{
		Informer: p.informer.Name, Result: insight.Unreachable, Reason: found.reason, Message: found.message, At: p.now, Degraded: p.degraded(),
	}
	if found.reason == updatev1beta1.ReasonInvalidResponse || found.reason == updatev1beta1.ReasonProtocolUnsupported {
		answer.Result = insight.Invalid
	}
	if p.isUpdating() {
		answer.Result = insight.Wait
	}
	last, known := p.answer(p.informer.Name)
	sameAnswer := known && last.Result == answer.Result && last.Reason == answer.Reason && last.Message == answer.Message
	if p.interval > 0 && !sameAnswer {
		p.setAnswer(answer)
	}
	if p.interval > 0 && answer.Result != insight.Wait {
		p.waitingSince = time.Time{}
	}
	p.failPlans(answer, found)
}

// planAttempts is the number of attempts before a plan proceeds without an informer.
const planAttempts = 3

// failPlans counts a failed attempt for each due plan.
func (p *pass) failPlans(answer insight.Answer, found *problem) {
	for i := range p.asks {
		open := &p.asks[i]
		if p.now.Before(open.ask.nextAt) {
			continue
		}
		open.ask.failures++
		open.ask.nextAt = p.now.Add(waitInterval)
		permanent := found.condition == updatev1beta1.ConditionCABundleResolved || found.reason == updatev1beta1.ReasonServiceNotFound ||
			found.reason == updatev1beta1.ReasonServiceNotClusterIP
		switch {
		case answer.Result == insight.Wait:
			p.settlePlan(open, answer)
		case permanent, open.ask.failures >= planAttempts:
			open.ask.settle(answer, p.now)
			open.ask.unavailable = true
		}
		p.setAsk(p.informer.Name, *open)
	}
}

// problem returns the reason why the informer is unusable; nil if it is usable.
func (p *pass) problem() *problem {
	for _, condition := range conditionTypes {
		if found := p.problems[condition]; found != nil {
			return found
		}
	}
	return nil
}

// online returns the informer's own condition Online; nil if there is none. It also reports whether
// the heartbeat of the condition is stale.
func (p *pass) online() (condition *updatev1beta1.InformerCondition, stale bool) {
	for i := range p.informer.Status.Conditions {
		if c := &p.informer.Status.Conditions[i]; c.Type == updatev1beta1.ConditionOnline {
			return c, c.IsStale(p.now)
		}
	}
	return nil, false
}

// isUpdating reports whether the informer has announced that it is updating itself.
func (p *pass) isUpdating() bool {
	online, stale := p.online()
	return online != nil && !stale && online.Status == metav1.ConditionFalse && online.Reason == updatev1beta1.ReasonInformerUpdating
}

// degraded returns the reason why the informer reports itself as not working; empty if it does not.
func (p *pass) degraded() string {
	switch online, stale := p.online(); {
	case online == nil:
		return ""
	case stale && online.ConfirmedTime().IsZero():
		return "its condition Online has no heartbeat"
	case stale && online.ConfirmedTime().After(p.now):
		return "the heartbeat of its condition Online is in the future: " + text.FormatTime(online.ConfirmedTime())
	case stale:
		return "its condition Online has had no heartbeat since " + text.FormatTime(online.ConfirmedTime())
	case online.Status != metav1.ConditionTrue && online.Reason != updatev1beta1.ReasonInformerUpdating:
		return "its condition Online is " + string(online.Status) + ": " + describe(online.Reason, online.Message)
	}
	return ""
}

// requeueAfter returns the delay until the next pass; 0 waits for a change.
func (p *pass) requeueAfter() time.Duration {
	var next time.Time
	earliest := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	unknownCA := p.problems[updatev1beta1.ConditionCABundleResolved] != nil
	blocked := unknownCA || p.connection == nil
	switch {
	case unknownCA: // even when idle, because no event reports that a user followed the advice of the condition
		earliest(p.caReadAt.Add(pollActive))
	case blocked:
	case p.discoveredAt.IsZero() || p.breaker.failures > 0 || p.recheck:
		earliest(latest(p.breaker.retryAt, p.now.Add(waitInterval)))
	default:
		if p.inUse() {
			earliest(p.discoveredAt.Add(discoveryInterval))
		}
	}
	if _, reports := p.handler(hooksv1alpha.HandlerStatus); reports && p.interval > 0 && !blocked {
		earliest(latest(p.pollAt, p.breaker.retryAt))
	}
	for _, open := range p.asks {
		if open.ask.isOpen() {
			earliest(latest(open.ask.nextAt, p.now.Add(time.Second)))
		}
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(p.now), time.Second)
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
