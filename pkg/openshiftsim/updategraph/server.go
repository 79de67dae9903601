// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updategraph

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Server serves a catalog on a loopback port.
type Server struct {
	listener net.Listener
	server   *http.Server
	done     chan error
}

// Serve starts a server that runs until Stop. If signer is nil, it serves no signatures.
func Serve(catalog *Catalog, signer Signer) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it returns at once
	if err != nil {
		return nil, fmt.Errorf("serving the update graph: %w", err)
	}
	s := &Server{
		listener: listener,
		server:   &http.Server{Handler: Handler(catalog, signer), ReadHeaderTimeout: 10 * time.Second},
		done:     make(chan error, 1),
	}
	go func() { s.done <- s.server.Serve(listener) }()
	return s, nil
}

// URL returns the value for spec.upstream of a ClusterVersion.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/graph" }

// SignaturesURL returns the base URL of the signatures. The signature of a release is at
// sha256=<digest>/signature-1 below it.
func (s *Server) SignaturesURL() string {
	return "http://" + s.listener.Addr().String() + "/signatures"
}

// Stop stops the server.
func (s *Server) Stop() error {
	if err := s.server.Close(); err != nil {
		return fmt.Errorf("stopping the update graph: %w", err)
	}
	if err := <-s.done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the update graph: %w", err)
	}
	return nil
}

// Signer signs releases. It must be safe for concurrent use.
type Signer interface {
	// Sign returns a signature of the release in the format of containers/image.
	Sign(release Release) ([]byte, error)
}

// Handler serves GET /graph with the graph of the channel in the query. Like the real service, it
// requires the parameters that a cluster sends. If signer is not nil, it also serves the signatures
// of the releases.
func Handler(catalog *Catalog, signer Signer) http.Handler {
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
		_ = encoder.Encode(catalog.Graph(r.URL.Query().Get("channel"))) // the client may have disconnected
	})
	if signer != nil {
		mux.HandleFunc("GET /signatures/{digest}/signature-1", func(w http.ResponseWriter, r *http.Request) {
			digest := strings.Replace(r.PathValue("digest"), "=", ":", 1)
			release, found := catalog.Image(repository + "@" + digest)
			if !found || release.Unsigned {
				http.NotFound(w, r)
				return
			}
			signature, err := signer.Sign(release)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_, _ = w.Write(signature) // the client may have disconnected
		})
	}
	return mux
}
