// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sink receives CloudEvents from a webhook in structured JSON mode and stores them. It can
// be stopped and restarted without losing its address or its events.
//
// It does not interpret the events.
package sink

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
)

// maxEventBytes is the event size that every receiver must accept according to the CloudEvents
// specification.
const maxEventBytes = 64 << 10

// Server is a receiver. Its methods are safe for concurrent use.
type Server struct {
	address string
	log     string // path of a file with one event per line

	mu       sync.Mutex // serializes Start and Stop
	server   *http.Server
	serveErr chan error
	store    store
}

// store holds the received events.
type store struct {
	mu      sync.Mutex
	events  []event.Event
	refused []string
}

// New reserves an address and returns a receiver that is not yet started.
func New(log string) (*Server, error) {
	port, err := controlplane.FreePort()
	if err != nil {
		return nil, fmt.Errorf("preparing the receiver of notifications: %w", err)
	}
	return &Server{address: fmt.Sprintf("127.0.0.1:%d", port), log: log}, nil
}

// URL returns the URL that events are posted to. It also answers GET requests.
func (s *Server) URL() string { return "http://" + s.address }

// Start starts the receiver, or does nothing if it is already running.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return nil
	}
	listener, err := net.Listen("tcp", s.address) //nolint:noctx // it returns at once
	if err != nil {
		return fmt.Errorf("starting the receiver of notifications: %w", err)
	}
	server, serveErr := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}, make(chan error, 1)
	go func() { serveErr <- server.Serve(listener) }()
	s.server, s.serveErr = server, serveErr
	return nil
}

// Stop stops the receiver: clients get "connection refused" until Start. It does nothing if the
// receiver is not running.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil
	}
	err := s.server.Close()
	if ended := <-s.serveErr; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	s.server = nil
	if err != nil {
		return fmt.Errorf("stopping the receiver of notifications: %w", err)
	}
	return nil
}

// Running reports whether the receiver is running.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server != nil
}

// Events returns the received events in order, without duplicates (same source and ID).
func (s *Server) Events() []event.Event {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return slices.Clone(s.store.events)
}

// Refused returns the errors of requests that did not contain a valid event.
func (s *Server) Refused() []string {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return slices.Clone(s.store.refused)
}

// ServeHTTP receives an event.
func (s *Server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method == http.MethodGet {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	one, err := read(request)
	if err == nil {
		err = s.add(one)
	}
	if err != nil {
		s.store.mu.Lock()
		s.store.refused = append(s.store.refused, err.Error())
		s.store.mu.Unlock()
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// read decodes and validates an event.
func read(request *http.Request) (event.Event, error) {
	var one event.Event
	if request.Method != http.MethodPost {
		return one, fmt.Errorf("the method is %s, must be POST", request.Method)
	}
	kind, _, err := mime.ParseMediaType(request.Header.Get("Content-Type"))
	if err != nil || kind != event.ApplicationCloudEventsJSON {
		return one, fmt.Errorf("the content type is %q, must be %s", request.Header.Get("Content-Type"), event.ApplicationCloudEventsJSON)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, request.Body, maxEventBytes))
	if err != nil {
		return one, fmt.Errorf("reading the event: %w", err)
	}
	if err := json.Unmarshal(body, &one); err != nil {
		return one, fmt.Errorf("reading the event: %w", err)
	}
	return one, one.Validate()
}

// add stores an event unless it is a duplicate.
func (s *Server) add(one event.Event) error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	same := func(known event.Event) bool { return known.ID() == one.ID() && known.Source() == one.Source() }
	if slices.ContainsFunc(s.store.events, same) {
		return nil
	}
	s.store.events = append(s.store.events, one)
	return appendLine(s.log, one)
}

func appendLine(file string, one event.Event) (err error) {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // in our state folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	_, err = log.Write(append(line, '\n'))
	return err
}
