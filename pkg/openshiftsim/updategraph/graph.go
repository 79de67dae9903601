// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updategraph

import (
	"slices"
	"strings"
)

// Graph is a response of the update service: the releases in a channel and the updates between
// them. For the format, see
// https://github.com/openshift/cincinnati/blob/master/docs/design/cincinnati.md.
type Graph struct {
	Nodes            []Node            `json:"nodes"`
	Edges            [][2]int          `json:"edges"`
	ConditionalEdges []ConditionalEdge `json:"conditionalEdges,omitempty"`
}

// Node is a release in a Graph.
type Node struct {
	Version  string            `json:"version"`
	Payload  string            `json:"payload"`
	Metadata map[string]string `json:"metadata"`
}

// Keys of a node's metadata.
const (
	MetadataChannels = "io.openshift.upgrades.graph.release.channels"
	MetadataURL      = "url"
)

// ConditionalEdge is an update with known risks.
type ConditionalEdge struct {
	Edges []Edge      `json:"edges"`
	Risks []GraphRisk `json:"risks"`
}

// Edge is an update between two versions.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// GraphRisk is a risk in the format of the update service.
type GraphRisk struct {
	URL           string         `json:"url"`
	Name          string         `json:"name"`
	Message       string         `json:"message"`
	MatchingRules []MatchingRule `json:"matchingRules"`
}

// MatchingRule determines whether a risk applies to a cluster.
type MatchingRule struct {
	Type   string  `json:"type"`
	PromQL *PromQL `json:"promql,omitempty"`
}

// PromQL is a query that returns 1 if the cluster is exposed to the risk.
type PromQL struct {
	PromQL string `json:"promql"`
}

// Graph returns the releases in a channel and the updates between them.
func (c *Catalog) Graph(channel string) Graph {
	var members []Release
	for _, release := range c.sorted() {
		if slices.Contains(release.Channels, channel) {
			members = append(members, release)
		}
	}
	graph := Graph{Nodes: []Node{}, Edges: [][2]int{}}
	for _, release := range members {
		graph.Nodes = append(graph.Nodes, Node{Version: release.Version, Payload: release.Image(), Metadata: map[string]string{
			MetadataChannels: strings.Join(release.Channels, ","),
			MetadataURL:      release.URL(),
		}})
	}
	for t, to := range members {
		for f, from := range members {
			switch {
			case !canUpdate(from, to):
			case len(to.Risks) == 0:
				graph.Edges = append(graph.Edges, [2]int{f, t})
			default:
				graph.ConditionalEdges = append(graph.ConditionalEdges, ConditionalEdge{
					Edges: []Edge{{From: from.Version, To: to.Version}},
					Risks: toGraphRisks(to.Risks),
				})
			}
		}
	}
	return graph
}

func toGraphRisks(risks []Risk) []GraphRisk {
	graph := make([]GraphRisk, 0, len(risks))
	for _, risk := range risks {
		graph = append(graph, GraphRisk{
			URL: risk.URL, Name: risk.Name, Message: risk.Message,
			MatchingRules: []MatchingRule{{Type: "PromQL", PromQL: &PromQL{PromQL: risk.query()}}},
		})
	}
	return graph
}

// query returns the PromQL query of the risk, or else a query with the result given by Applies.
func (r Risk) query() string {
	switch {
	case r.PromQL != "":
		return r.PromQL
	case r.Applies == No:
		return "vector(0)"
	case r.Applies == Unknown:
		return "vector(0) > 0" // no result
	default:
		return "vector(1)"
	}
}
