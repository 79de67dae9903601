// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updategraph

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server serves a catalogue on a loopback port.
type Server struct {
	listener net.Listener
	server   *http.Server
	done     chan error
}

// Serve starts a server, which runs until it is stopped.
func Serve(catalogue *Catalogue) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it returns at once
	if err != nil {
		return nil, fmt.Errorf("serving the update graph: %w", err)
	}
	s := &Server{
		listener: listener,
		server:   &http.Server{Handler: Handler(catalogue), ReadHeaderTimeout: 10 * time.Second},
		done:     make(chan error, 1),
	}
	go func() { s.done <- s.server.Serve(listener) }()
	return s, nil
}

// URL returns what belongs into a ClusterVersion's spec.upstream.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/graph" }

// Stop ends the server.
func (s *Server) Stop() error {
	if err := s.server.Close(); err != nil {
		return fmt.Errorf("stopping the update graph: %w", err)
	}
	if err := <-s.done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the update graph: %w", err)
	}
	return nil
}

// Handler answers GET /graph with the graph of the channel that the query names. Like the real service it insists on
// the parameters that a cluster sends.
func Handler(catalogue *Catalogue) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /graph", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		for _, parameter := range []string{"arch", "channel", "id", "version"} {
			if r.URL.Query().Get(parameter) == "" {
				w.WriteHeader(http.StatusBadRequest)
				_ = encoder.Encode(map[string]string{
					"kind": "missing_params", "value": "mandatory client parameters missing: " + parameter,
				})
				return
			}
		}
		_ = encoder.Encode(catalogue.Graph(r.URL.Query().Get("channel"))) // a client that went away is no trouble
	})
	return mux
}
