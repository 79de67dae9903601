// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updategraph_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

func catalog() *updategraph.Catalog {
	return updategraph.NewCatalog(
		updategraph.Release{Version: "4.20.10", Channels: []string{"stable-4.20"}, Risks: []updategraph.Risk{{Name: "SlowDisks"}}},
		updategraph.Release{Version: "4.20.5", Channels: []string{"stable-4.20", "stable-4.21"}},
		updategraph.Release{Version: "4.20.6", Channels: []string{"stable-4.20", "fast-4.20"}},
		updategraph.Release{Version: "4.22.0", Channels: []string{"stable-4.20"}},
		updategraph.Release{Version: "4.21.0", Channels: []string{"stable-4.21"}, From: []string{"4.20.6"}},
	)
}

func get(t *testing.T, url string) (int, updategraph.Graph) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var graph updategraph.Graph
	if err := json.NewDecoder(response.Body).Decode(&graph); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, graph
}

func updates(graph updategraph.Graph) (plain, conditional []string) {
	for _, edge := range graph.Edges {
		plain = append(plain, graph.Nodes[edge[0]].Version+" "+graph.Nodes[edge[1]].Version)
	}
	for _, edges := range graph.ConditionalEdges {
		for _, edge := range edges.Edges {
			conditional = append(conditional, edge.From+" "+edge.To+" "+edges.Risks[0].Name)
		}
	}
	return plain, conditional
}

func TestCatalog_graph_of_a_channel(t *testing.T) {
	t.Parallel()
	server, err := updategraph.Serve(catalog(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	tests := map[string]struct {
		query              string
		status             int
		plain, conditional []string
	}{
		"leads to higher versions of the same and the next minor version, sorted as versions": {
			query: "channel=stable-4.20&arch=amd64&id=1&version=4.20.5", status: http.StatusOK,
			plain: []string{"4.20.5 4.20.6"}, conditional: []string{"4.20.5 4.20.10 SlowDisks", "4.20.6 4.20.10 SlowDisks"},
		},
		"leads only from the versions that a release names": {
			query: "channel=stable-4.21&arch=amd64&id=1&version=4.20.5", status: http.StatusOK,
		},
		"unknown channel":           {query: "channel=none&arch=amd64&id=1&version=4.20.5", status: http.StatusOK},
		"request without an ID":     {query: "channel=stable-4.20&arch=amd64&version=4.20.5", status: http.StatusBadRequest},
		"request without a version": {query: "channel=stable-4.20&arch=amd64&id=1", status: http.StatusBadRequest},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, graph := get(t, server.URL()+"?"+test.query)
			if status != test.status {
				t.Fatalf("got status %d, want %d", status, test.status)
			}
			plain, conditional := updates(graph)
			if diff := cmp.Diff(test.plain, plain); diff != "" {
				t.Errorf("edges (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.conditional, conditional); diff != "" {
				t.Errorf("conditional edges (-want +got):\n%s", diff)
			}
		})
	}
}

// signer signs a release with its version.
type signer struct{}

func (signer) Sign(release updategraph.Release) ([]byte, error) { return []byte(release.Version), nil }

func TestServer_signatures(t *testing.T) {
	t.Parallel()
	known := catalog()
	known.Set(updategraph.Release{Version: "4.20.7", Unsigned: true})
	for name, test := range map[string]struct {
		version   string
		signer    updategraph.Signer
		status    int
		signature string
	}{
		"signed release":              {"4.20.6", signer{}, http.StatusOK, "4.20.6"},
		"release without a signature": {"4.20.7", signer{}, http.StatusNotFound, "404 page not found\n"},
		"unknown release":             {"4.20.9", signer{}, http.StatusNotFound, "404 page not found\n"},
		"server without a signer":     {"4.20.6", nil, http.StatusNotFound, "404 page not found\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			digest := strings.Replace(updategraph.Release{Version: test.version}.Digest(), ":", "=", 1)
			answer := httptest.NewRecorder()
			updategraph.Handler(known, test.signer).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/signatures/"+digest+"/signature-1", http.NoBody))
			if answer.Code != test.status || answer.Body.String() != test.signature {
				t.Errorf("got %d %q, want %d %q", answer.Code, answer.Body, test.status, test.signature)
			}
		})
	}
}

func TestRisk_query(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		risk updategraph.Risk
		want string
	}{
		"yes by default":    {updategraph.Risk{}, "vector(1)"},
		"no":                {updategraph.Risk{Applies: updategraph.No}, "vector(0)"},
		"unknown":           {updategraph.Risk{Applies: updategraph.Unknown}, "vector(0) > 0"},
		"query of the risk": {updategraph.Risk{Applies: updategraph.No, PromQL: "up"}, "up"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.risk.Name = "SlowDisks"
			graph := updategraph.NewCatalog(
				updategraph.Release{Version: "4.20.5", Channels: []string{"stable"}},
				updategraph.Release{Version: "4.20.6", Channels: []string{"stable"}, Risks: []updategraph.Risk{test.risk}},
			).Graph("stable")
			if got := graph.ConditionalEdges[0].Risks[0].MatchingRules[0].PromQL.PromQL; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestCatalog_release_by_image(t *testing.T) {
	t.Parallel()
	known := catalog()
	release, _ := known.Version("4.20.6")
	found, ok := known.Image(release.Image())
	if !ok || found.Version != "4.20.6" {
		t.Errorf("got %v, %v", found, ok)
	}
	if _, ok := known.Image("quay.io/unknown/release@sha256:0"); ok {
		t.Error("an unknown image was found")
	}
}

func TestCatalog_exposed(t *testing.T) {
	t.Parallel()
	known := catalog()
	if got := known.Exposed("4.20.10", "SlowDisks"); got != updategraph.Yes {
		t.Errorf("got %q, want yes by default", got)
	}
	known.Set(updategraph.Release{Version: "4.20.10", Risks: []updategraph.Risk{{Name: "SlowDisks", Applies: updategraph.No}}})
	if got := known.Exposed("4.20.10", "SlowDisks"); got != updategraph.No {
		t.Errorf("got %q after it was changed to no", got)
	}
	if got := known.Exposed("4.20.10", "Other"); got != updategraph.Unknown {
		t.Errorf("got %q for an unknown risk", got)
	}
}
