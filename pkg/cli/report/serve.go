// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

const (
	// RefreshInterval is how often browsers reload a page.
	RefreshInterval = 30 * time.Second
	// MaxPageAge is how long data is cached for all browsers, to limit the load on the cluster.
	MaxPageAge = 20 * time.Second
)

// ServeFlags holds the flags of commands that write or serve a page.
type ServeFlags struct {
	Serve, Overwrite bool
	Port             int
}

// Bind adds the flags to a command.
func (f *ServeFlags) Bind(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.Serve, "serve", false, "serve the page on the loopback address until interrupted, and update it while it is open in a browser")
	cmd.Flags().IntVar(&f.Port, "port", 0, "port for --serve; 0 selects a free port")
	cmd.Flags().BoolVar(&f.Overwrite, "overwrite", false, "overwrite FILE if it exists")
}

// Check returns an error if --serve is combined with flags for files.
func (f *ServeFlags) Check(cmd *cobra.Command) error {
	for _, name := range []string{"overwrite", "state"} {
		if flag := cmd.Flags().Lookup(name); f.Serve && flag != nil && flag.Changed {
			return session.UsageError("--serve: writes no file; leave out --%s", name)
		}
	}
	return nil
}

// ErrNoPage is returned for an address without a page.
var ErrNoPage = errors.New("no such page")

// Pages returns the page for a request.
type Pages func(*http.Request) ([]byte, error)

// Serve serves pages on the loopback address until the context is canceled.
func Serve(ctx context.Context, p *session.Session, port int, get Pages) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("serving the page: %w", err)
	}
	if _, err := fmt.Fprintf(p.Streams.Out, "The page is at http://%s until Ctrl-C.\n", listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: get.Handler(listener.Addr().String()), ReadHeaderTimeout: session.RequestTimeout}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Handler serves pages. It only accepts requests that name its own address, so websites open in the browser
// cannot read the pages through a DNS name that resolves to the loopback address.
func (get Pages) Handler(address string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != address || r.Method != http.MethodGet {
			http.Error(w, "the page is at http://"+address+"/", http.StatusNotFound)
			return
		}
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Security-Policy", "frame-ancestors 'none'")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		page, err := get(r)
		switch {
		case errors.Is(err, ErrNoPage):
			http.Error(w, "the page is at http://"+address+"/", http.StatusNotFound)
		case err != nil:
			header.Set("Refresh", strconv.Itoa(int(RefreshInterval.Seconds()))) // the browser retries until the cluster responds
			http.Error(w, screen.Clean(err.Error()), http.StatusBadGateway)
		default:
			header.Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(page)
		}
	})
}

// Cached is a value that is read again when it gets old.
type Cached[T any] struct {
	Clock clock.PassiveClock
	Read  func(context.Context) (T, error)

	mu    sync.Mutex
	made  time.Time
	value T
}

// Get returns the current value.
func (c *Cached[T]) Get(ctx context.Context) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Clock.Now()
	if !c.made.IsZero() && now.Sub(c.made) < MaxPageAge {
		return c.value, nil
	}
	value, err := c.Read(ctx)
	if err != nil {
		return value, err
	}
	c.made, c.value = now, value
	return value, nil
}
