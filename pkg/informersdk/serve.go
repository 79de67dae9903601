// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informersdk

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
)

// Default values of a Config.
const (
	DefaultAddress = ":8443"
	DefaultCertDir = "/etc/update-informer/tls"
)

// shutdownTimeout limits how long requests may take when the program shuts down.
const shutdownTimeout = 10 * time.Second

// Config configures Run.
type Config struct {
	// Informer is the name of the UpdateInformer. It defaults to Service.
	Informer string
	// Namespace and Service identify the Service in the UpdateInformer.
	Namespace, Service string
	// UpdateInsights finds insights about the update in progress. It may be nil.
	UpdateInsights Find
	// PlanInsights finds problems that an update would encounter if it were started. It may be nil.
	PlanInsights Find
	// State returns the state of the informer. If it is nil, the informer always works as expected.
	State func(context.Context) InformerState
	// Users are the users who may query the informer. It defaults to StatusControllerUser.
	Users []string
	// Address is the address to listen on. It defaults to DefaultAddress.
	Address string
	// CertDir contains the serving certificate in tls.crt and its key in tls.key. It defaults to
	// DefaultCertDir.
	CertDir string
	// Kubernetes is the client configuration for the API server. It defaults to that of the pod.
	Kubernetes *rest.Config
	// Log receives errors. By default, they are discarded.
	Log logr.Logger
}

// Run serves an informer until the context ends. It returns nil if all requests have completed by
// then.
func Run(ctx context.Context, c Config) error {
	access := c.Kubernetes
	if access == nil {
		var err error
		if access, err = rest.InClusterConfig(); err != nil {
			return fmt.Errorf("finding the API server: %w", err)
		}
	}
	reviews, err := authenticationclient.NewForConfig(access)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	objects, err := dynamic.NewForConfig(access)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	review := &TokenReview{Reviews: reviews.TokenReviews(), Audience: hooksv1alpha.Audience(c.Namespace, c.Service), Users: c.Users}
	handler, err := NewHandler(HandlerOptions{UpdateInsights: c.UpdateInsights, PlanInsights: c.PlanInsights, Authorize: review.Authorize, Log: c.Log})
	if err != nil {
		return err
	}
	dir := cmp.Or(c.CertDir, DefaultCertDir)
	certificate := &Certificate{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"), Log: c.Log}
	if _, err := certificate.Get(nil); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cmp.Or(c.Address, DefaultAddress))
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	heartbeat := &Heartbeat{Client: objects, Informer: cmp.Or(c.Informer, c.Service), State: c.State, Log: c.Log}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	running.Go(func() { heartbeat.Run(ctx) })
	return Serve(ctx, listener, handler, certificate)
}

// Serve serves a handler over TLS until the context ends and closes the listener. It returns nil if
// all requests complete within ten seconds.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, certificate *Certificate) error {
	server := &http.Server{
		Handler:           handler,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.Get},
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // for failed handshakes; the caller sees the reason
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(bounded); err != nil {
		return fmt.Errorf("waiting for requests to end: %w", errors.Join(err, server.Close()))
	}
	return nil
}
