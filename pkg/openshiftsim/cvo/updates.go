// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cvo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// updates is a response of the update service and the query for it.
type updates struct {
	query       graphQuery
	fetched     time.Time
	available   []configv1.Release
	conditional []configv1.ConditionalUpdate
	condition   configv1.ClusterOperatorStatusCondition
}

type graphQuery struct{ upstream, channel, version, id string }

// syncUpdates queries the update service for updates from the release of the running pod if the
// interval has passed or the query has changed. It returns the time until the next query.
func (s *Simulator) syncUpdates(ctx context.Context, version *configv1.ClusterVersion, now time.Time) time.Duration {
	query := graphQuery{
		upstream: string(version.Spec.Upstream), channel: version.Spec.Channel,
		version: s.running.Version, id: string(version.Spec.ClusterID),
	}
	interval := s.options.Speed.Scale(fetchInterval)
	if s.updates == nil || s.updates.query != query || now.Sub(s.updates.fetched) >= interval {
		s.updates = s.fetch(ctx, query)
		s.updates.fetched = now
	}
	version.Status.AvailableUpdates = s.updates.available
	version.Status.ConditionalUpdates = keepTransitionTimes(version.Status.ConditionalUpdates, s.updates.conditional, now)
	c := s.updates.condition
	set(version, configv1.RetrievedUpdates, c.Status, c.Reason, c.Message, now)
	return max(time.Millisecond, interval-now.Sub(s.updates.fetched))
}

func (s *Simulator) fetch(ctx context.Context, query graphQuery) *updates {
	answer := &updates{query: query}
	failed := func(reason, message string) *updates {
		answer.condition = configv1.ClusterOperatorStatusCondition{Status: configv1.ConditionFalse, Reason: reason, Message: message}
		return answer
	}
	switch {
	case query.upstream == "":
		return failed("NoUpstream", "No upstream server has been set to retrieve updates.")
	case query.channel == "":
		return failed("NoChannel", "The update channel has not been configured.")
	}
	graph, reason, err := s.queryGraph(ctx, query)
	if err != nil {
		return failed(reason, fmt.Sprintf("Unable to retrieve available updates: %s", err))
	}
	here := slices.IndexFunc(graph.Nodes, func(node updategraph.Node) bool { return node.Version == query.version })
	if here < 0 {
		return failed("VersionNotFound", fmt.Sprintf(
			"Unable to retrieve available updates: currently reconciling cluster version %s not found in the %q channel",
			query.version, query.channel))
	}
	for _, edge := range graph.Edges {
		if edge[0] == here {
			answer.available = append(answer.available, release(graph.Nodes[edge[1]]))
		}
	}
	for _, edges := range graph.ConditionalEdges {
		for _, edge := range edges.Edges {
			if edge.From == query.version {
				s.addConditional(answer, graph, edge.To, edges.Risks)
			}
		}
	}
	slices.SortFunc(answer.available, func(a, b configv1.Release) int { return newestFirst(a, b) })
	slices.SortFunc(answer.conditional, func(a, b configv1.ConditionalUpdate) int { return newestFirst(a.Release, b.Release) })
	answer.condition = configv1.ClusterOperatorStatusCondition{Status: configv1.ConditionTrue}
	return answer
}

func (s *Simulator) queryGraph(ctx context.Context, query graphQuery) (updategraph.Graph, string, error) {
	var graph updategraph.Graph
	target, err := url.Parse(query.upstream)
	if err != nil {
		return graph, "InvalidURI", err
	}
	target.RawQuery = url.Values{
		"arch": {runtime.GOARCH}, "channel": {query.channel}, "id": {query.id}, "version": {query.version},
	}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return graph, "InvalidRequest", err
	}
	request.Header.Set("Accept", "application/json")
	response, err := s.web.Do(request)
	if err != nil {
		return graph, "RemoteFailed", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return graph, "ResponseFailed", fmt.Errorf("unexpected HTTP status: %s", response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&graph); err != nil {
		return graph, "ResponseInvalid", err
	}
	return graph, "", nil
}

// addConditional adds an update with risks. If none of them applies, the update is also an
// available update.
func (s *Simulator) addConditional(answer *updates, graph updategraph.Graph, to string, risks []updategraph.GraphRisk) {
	there := slices.IndexFunc(graph.Nodes, func(node updategraph.Node) bool { return node.Version == to })
	if there < 0 {
		return
	}
	update := configv1.ConditionalUpdate{Release: release(graph.Nodes[there])}
	for _, risk := range risks {
		update.Risks = append(update.Risks, configv1.ConditionalUpdateRisk{
			URL: risk.URL, Name: risk.Name, Message: risk.Message, MatchingRules: matchingRules(risk.MatchingRules),
		})
	}
	recommended := s.recommendedCondition(to, risks)
	update.Conditions = []metav1.Condition{recommended}
	if recommended.Status == metav1.ConditionTrue {
		answer.available = append(answer.available, update.Release)
	}
	answer.conditional = append(answer.conditional, update)
}

func (s *Simulator) recommendedCondition(version string, risks []updategraph.GraphRisk) metav1.Condition {
	condition := metav1.Condition{
		Type: "Recommended", Status: metav1.ConditionTrue, Reason: "NotExposedToRisks",
		Message: "The update is recommended, because none of the conditional update risks apply to this cluster.",
	}
	var reasons, messages []string
	for _, risk := range risks {
		switch s.options.Catalog.Exposed(version, risk.Name) {
		case updategraph.No:
		case updategraph.Yes:
			condition.Status = metav1.ConditionFalse
			reasons = append(reasons, risk.Name)
			messages = append(messages, risk.Message+" "+risk.URL)
		default:
			if condition.Status != metav1.ConditionFalse {
				condition.Status = metav1.ConditionUnknown
			}
			reasons = append(reasons, "EvaluationFailed")
			messages = append(messages, fmt.Sprintf("Could not evaluate exposure to update risk %s (the query returned nothing)\n  %s description: %s\n  %s URL: %s",
				risk.Name, risk.Name, risk.Message, risk.Name, risk.URL))
		}
	}
	switch len(slices.Compact(slices.Sorted(slices.Values(reasons)))) {
	case 0:
		return condition
	case 1:
		condition.Reason = reasons[0]
	default:
		condition.Reason = "MultipleReasons"
	}
	condition.Message = strings.Join(messages, "\n\n")
	return condition
}

func matchingRules(rules []updategraph.MatchingRule) []configv1.ClusterCondition {
	conditions := make([]configv1.ClusterCondition, 0, len(rules))
	for _, rule := range rules {
		condition := configv1.ClusterCondition{Type: rule.Type}
		if rule.PromQL != nil {
			condition.PromQL = &configv1.PromQLClusterCondition{PromQL: rule.PromQL.PromQL}
		}
		conditions = append(conditions, condition)
	}
	return conditions
}

func keepTransitionTimes(old, updated []configv1.ConditionalUpdate, now time.Time) []configv1.ConditionalUpdate {
	kept := make([]configv1.ConditionalUpdate, 0, len(updated))
	for i := range updated {
		update := updated[i].DeepCopy()
		var conditions []metav1.Condition
		for j := range old {
			if old[j].Release.Version == update.Release.Version {
				conditions = old[j].DeepCopy().Conditions
			}
		}
		for _, condition := range update.Conditions {
			condition.LastTransitionTime = metav1.NewTime(now)
			meta.SetStatusCondition(&conditions, condition)
		}
		update.Conditions = conditions
		kept = append(kept, *update)
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

func release(node updategraph.Node) configv1.Release {
	return configv1.Release{
		Version: node.Version, Image: node.Payload, URL: configv1.URL(node.Metadata[updategraph.MetadataURL]),
		Channels: strings.Split(node.Metadata[updategraph.MetadataChannels], ","),
	}
}

func newestFirst(a, b configv1.Release) int {
	return semver.MustParse(b.Version).Compare(semver.MustParse(a.Version))
}
