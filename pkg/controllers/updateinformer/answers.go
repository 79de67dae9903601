// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
)

// goneFor is how long the answer of a deleted informer is kept, so every reader can see it.
const goneFor = time.Hour

// Exchange connects the controllers of UpdateInformers, the UpdateStatus, and UpdatePlans. It holds
// the latest answer of each informer, and the requests of plans with their answers. Its methods are
// safe for concurrent use.
type Exchange struct {
	mu      sync.Mutex
	answers map[string]insight.Answer             // by informer
	plans   map[types.NamespacedName]*planRequest // by plan
	rounds  int                                   // of requests of plans

	asked         chan event.GenericEvent
	statusChanged chan event.GenericEvent
	planChanged   chan event.GenericEvent
}

// planRequest is the request of a plan to all informers.
type planRequest struct {
	round   int
	request hooksv1alpha.UpdatePlanInsightsRequest
	asks    map[string]*planAsk // by informer
}

// planAsk is the state of the request of a plan to one informer.
type planAsk struct {
	failures     int
	waitingSince time.Time
	nextAt       time.Time
	answer       *insight.Answer // nil if the informer has not finished
	unavailable  bool            // the informer could not be queried; it is queried as soon as it can be
}

// settle stores an answer.
func (a *planAsk) settle(answer insight.Answer, now time.Time) {
	a.answer, a.nextAt, a.unavailable = &answer, now.Add(repairInterval), false
}

// isOpen reports whether the informer is still queried: it has not answered, or it failed in a way
// that a user may fix.
func (a *planAsk) isOpen() bool {
	return a.answer == nil || a.answer.Degraded != "" || a.answer.Result != insight.Success && a.answer.Result != insight.NotQueried
}

// NewExchange returns an empty Exchange.
func NewExchange() *Exchange {
	return &Exchange{
		answers: map[string]insight.Answer{}, plans: map[types.NamespacedName]*planRequest{},
		asked: make(chan event.GenericEvent, 1), statusChanged: make(chan event.GenericEvent, 1), planChanged: make(chan event.GenericEvent, 1),
	}
}

// signal sends an event unless one is pending. One event stands for changes of all objects.
func signal(to chan<- event.GenericEvent) {
	select {
	case to <- event.GenericEvent{Object: &updatev1beta1.UpdateInformer{}}:
	default:
	}
}

// StatusChanged returns the channel that receives an event after an informer has answered about the
// update in progress. The channel supports one reader.
func (x *Exchange) StatusChanged() <-chan event.GenericEvent { return x.statusChanged }

// PlanChanged returns the channel that receives an event after an informer has answered a plan. The
// channel supports one reader.
func (x *Exchange) PlanChanged() <-chan event.GenericEvent { return x.planChanged }

// Answers returns the latest answer of each informer about the update in progress, sorted by
// informer.
func (x *Exchange) Answers() []insight.Answer {
	x.mu.Lock()
	defer x.mu.Unlock()
	answers := make([]insight.Answer, 0, len(x.answers))
	for _, name := range slices.Sorted(maps.Keys(x.answers)) {
		answers = append(answers, x.answers[name])
	}
	return answers
}

// AskPlan requests the insights of every enabled informer for a plan. A second call for the same
// plan starts over and drops the answers to the earlier request.
func (x *Exchange) AskPlan(plan types.NamespacedName, request hooksv1alpha.UpdatePlanInsightsRequest) {
	x.mu.Lock()
	x.rounds++
	x.plans[plan] = &planRequest{round: x.rounds, request: request, asks: map[string]*planAsk{}}
	x.mu.Unlock()
	signal(x.asked)
}

// ForgetPlan drops the request of a plan and its answers.
func (x *Exchange) ForgetPlan(plan types.NamespacedName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.plans, plan)
}

// PlanAnswers returns the answers of the informers that have finished a plan's request, sorted by
// informer. It also reports whether the request is known: after a restart, it is not. An enabled
// informer without an answer has not finished. An informer that does not analyze plans has the
// result NotQueried.
func (x *Exchange) PlanAnswers(plan types.NamespacedName) ([]insight.Answer, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	request, known := x.plans[plan]
	if !known {
		return nil, false
	}
	var answers []insight.Answer
	for _, name := range slices.Sorted(maps.Keys(request.asks)) {
		if answer := request.asks[name].answer; answer != nil {
			answers = append(answers, *answer)
		}
	}
	return answers, true
}

// setAnswer stores the latest answer of an informer.
func (x *Exchange) setAnswer(answer insight.Answer) {
	x.mu.Lock()
	x.answers[answer.Informer] = answer
	maps.DeleteFunc(x.answers, func(_ string, other insight.Answer) bool {
		return other.Result == insight.Deleted && answer.At.Sub(other.At) > goneFor
	})
	x.mu.Unlock()
	signal(x.statusChanged)
}

// answer returns the latest answer of an informer.
func (x *Exchange) answer(informer string) (insight.Answer, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	answer, known := x.answers[informer]
	return answer, known
}

// openAsk is a request of a plan that an informer still has to answer.
type openAsk struct {
	plan    types.NamespacedName
	round   int
	request hooksv1alpha.UpdatePlanInsightsRequest
	ask     planAsk
}

// openAsks returns the requests of plans that an informer still has to answer, sorted by plan.
func (x *Exchange) openAsks(informer string) []openAsk {
	x.mu.Lock()
	defer x.mu.Unlock()
	var open []openAsk
	for plan, request := range x.plans {
		ask := request.asks[informer]
		if ask == nil {
			ask = &planAsk{}
			request.asks[informer] = ask
		}
		if ask.isOpen() {
			open = append(open, openAsk{plan, request.round, request.request, *ask})
		}
	}
	slices.SortFunc(open, func(a, b openAsk) int { return a.round - b.round })
	return open
}

// setAsk stores the state of the request of a plan to an informer. It does nothing if the plan has
// made another request in the meantime.
func (x *Exchange) setAsk(informer string, open openAsk) {
	x.mu.Lock()
	request := x.plans[open.plan]
	current := request != nil && request.round == open.round
	if current {
		request.asks[informer] = &open.ask
	}
	x.mu.Unlock()
	if current && open.ask.answer != nil {
		signal(x.planChanged)
	}
}

// dropInformer drops the answers of an informer once it is no longer queried.
func (x *Exchange) dropInformer(informer string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, request := range x.plans {
		delete(request.asks, informer)
	}
}
