// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informersdk_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/pki"
)

// reviews responds to TokenReviews and counts them.
type reviews struct {
	authenticationclient.TokenReviewInterface

	answers map[string]authenticationv1.TokenReviewStatus // by token
	err     error
	count   int
}

func (r *reviews) Create(_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	r.count++
	if r.err != nil {
		return nil, r.err
	}
	if diff := cmp.Diff([]string{"update-informer.ns.svc"}, review.Spec.Audiences); diff != "" {
		return nil, errors.New(diff)
	}
	answered := review.DeepCopy()
	answered.Status = r.answers[review.Spec.Token]
	return answered, nil
}

func reviewed(user string, audiences ...string) authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: user}, Audiences: audiences}
}

func TestTokenReview(t *testing.T) {
	t.Parallel()
	const audience = "update-informer.ns.svc"
	answers := map[string]authenticationv1.TokenReviewStatus{
		"controller":       reviewed(informersdk.StatusControllerUser, audience),
		"another audience": reviewed(informersdk.StatusControllerUser, "https://kubernetes.default.svc"),
		"no audience":      reviewed(informersdk.StatusControllerUser),
		"another user":     reviewed("system:serviceaccount:default:default", audience),
		"denied":           {User: authenticationv1.UserInfo{Username: informersdk.StatusControllerUser}, Audiences: []string{audience}},
	}
	for token, tc := range map[string]struct {
		users []string
		want  error
	}{
		"controller":       {},
		"another audience": {want: informersdk.ErrUnauthenticated},
		"no audience":      {want: informersdk.ErrUnauthenticated},
		"another user":     {want: informersdk.ErrForbidden},
		"denied":           {want: informersdk.ErrUnauthenticated},
		"nonsense":         {want: informersdk.ErrUnauthenticated},
	} {
		t.Run(token, func(t *testing.T) {
			t.Parallel()
			review := &informersdk.TokenReview{Reviews: &reviews{answers: answers}, Audience: audience, Users: tc.users}
			if err := review.Authorize(t.Context(), token); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
	t.Run("user of the informer's choice", func(t *testing.T) {
		t.Parallel()
		review := &informersdk.TokenReview{Reviews: &reviews{answers: answers}, Audience: audience, Users: []string{"system:serviceaccount:default:default"}}
		if err := review.Authorize(t.Context(), "another user"); err != nil {
			t.Error(err)
		}
		if err := review.Authorize(t.Context(), "controller"); !errors.Is(err, informersdk.ErrForbidden) {
			t.Error(err)
		}
	})
}

func TestTokenReviewKeepsAnswers(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(start)
	api := &reviews{answers: map[string]authenticationv1.TokenReviewStatus{"good": reviewed(informersdk.StatusControllerUser, "update-informer.ns.svc")}}
	review := &informersdk.TokenReview{Reviews: api, Audience: "update-informer.ns.svc", Clock: clock}
	for _, step := range []struct {
		token   string
		at      time.Duration
		err     error // returned by the API server
		want    error
		reviews int // so far
	}{
		{token: "good", reviews: 1},
		{token: "good", at: 59 * time.Second, reviews: 1},
		{token: "bad", at: 59 * time.Second, want: informersdk.ErrUnauthenticated, reviews: 2},
		{token: "bad", at: 68 * time.Second, want: informersdk.ErrUnauthenticated, reviews: 2},
		{token: "good", at: 60 * time.Second, reviews: 3},
		{token: "bad", at: 69 * time.Second, want: informersdk.ErrUnauthenticated, reviews: 4},
		{token: "good", at: 3 * time.Minute, err: io.ErrUnexpectedEOF, want: io.ErrUnexpectedEOF, reviews: 5},
		{token: "good", at: 3 * time.Minute, reviews: 6}, // errors are not cached
	} {
		clock.SetTime(start.Add(step.at))
		api.err = step.err
		if err := review.Authorize(t.Context(), step.token); !errors.Is(err, step.want) || api.count != step.reviews {
			t.Errorf("token %s after %s: %v after %d reviews, want %v after %d", step.token, step.at, err, api.count, step.want, step.reviews)
		}
	}
	for i := range 1000 { // a flood of tokens
		_ = review.Authorize(t.Context(), strconv.Itoa(i))
	}
	if kept := review.Kept(); kept > 256 {
		t.Errorf("%d answers are kept", kept)
	}
}

// writeCertificate writes a certificate for a name and returns its CA pool.
func writeCertificate(t *testing.T, dir, name string) *x509.CertPool {
	t.Helper()
	authority := pki.New("test")
	now := clock.RealClock{}.Now()
	certificate := authority.Issue(name, now.Add(-time.Hour), now.Add(time.Hour))
	if err := pki.Write(certificate, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.PEM)
	return pool
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCertificateIsReloaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clock := clocktesting.NewFakePassiveClock(start)
	certificate := &informersdk.Certificate{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"), Clock: clock}
	if _, err := certificate.Get(nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without files: %v", err)
	}
	names := func() string {
		got, err := certificate.Get(nil)
		if err != nil {
			t.Fatal(err)
		}
		return got.Leaf.DNSNames[0]
	}
	writeCertificate(t, dir, "first")
	if got := names(); got != "first" {
		t.Errorf("at first: %s", got)
	}
	writeCertificate(t, dir, "second")
	if got := names(); got != "first" {
		t.Errorf("at once: %s", got)
	}
	clock.SetTime(start.Add(10 * time.Second))
	if got := names(); got != "second" {
		t.Errorf("after 10 seconds: %s", got)
	}
	writeFile(t, filepath.Join(dir, "tls.crt"), []byte("half"))
	clock.SetTime(start.Add(20 * time.Second))
	if got := names(); got != "second" {
		t.Errorf("with an invalid file: %s", got)
	}
	writeCertificate(t, dir, "third")
	clock.SetTime(start) // the clock was set back
	if got := names(); got != "third" {
		t.Errorf("after the repair: %s", got)
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authorities := writeCertificate(t, dir, "informer.ns.svc")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	requested := make(chan struct{})
	respond := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(requested)
		<-respond
		_, _ = io.WriteString(w, "answer")
	})
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- informersdk.Serve(ctx, listener, handler, &informersdk.Certificate{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")})
	}()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, ServerName: "informer.ns.svc"}}}
	answered := make(chan string, 1)
	go func() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+listener.Addr().String(), http.NoBody)
		if err != nil {
			answered <- err.Error()
			return
		}
		response, err := client.Do(request)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		answered <- fmt.Sprint(string(body), err)
	}()
	<-requested
	cancel()
	close(respond)
	if got := <-answered; got != "answer<nil>" {
		t.Errorf("a request that is being answered at the end gets %q", got)
	}
	client.CloseIdleConnections()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String()); err == nil {
		t.Errorf("%s is still served", connection.RemoteAddr())
	}
}

// cluster returns a client that serves an UpdateInformer, and a list that collects the applied
// statuses.
func cluster(t *testing.T, conditions ...any) (client *dynamicfake.FakeDynamicClient, applied *[]map[string]any) {
	t.Helper()
	informer := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1beta1", "kind": "UpdateInformer", "metadata": map[string]any{"name": "mine"},
		"status": map[string]any{"conditions": conditions},
	}}
	kinds := map[schema.GroupVersionResource]string{{Group: "config.openshift.io", Version: "v1beta1", Resource: "updateinformers"}: "UpdateInformerList"}
	client = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, informer)
	applied = &[]map[string]any{}
	client.PrependReactor("patch", "updateinformers", func(action kubetesting.Action) (bool, runtime.Object, error) {
		patch := action.(kubetesting.PatchActionImpl)
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(patch.Patch); err != nil {
			return true, nil, err
		}
		if patch.Subresource != "status" || patch.PatchOptions.FieldManager == "" || !*patch.PatchOptions.Force {
			return true, nil, fmt.Errorf("patch of %q by %v", patch.Subresource, patch.PatchOptions)
		}
		list, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
		if err == nil {
			*applied = append(*applied, list[0].(map[string]any))
		}
		return true, object, err
	})
	return client, applied
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(start)
	client, applied := cluster(t, map[string]any{
		"type": "Online", "status": "True", "reason": "AsExpected", "lastTransitionTime": "2026-11-20T00:00:00Z",
	})
	heartbeat := &informersdk.Heartbeat{Client: client, Informer: "mine", Clock: clock}
	for _, state := range []informersdk.InformerState{{}, {Reason: "InformerUpdating", Message: "to\n2.0"}, {Reason: "Degraded"}, {Reason: "AsExpected"}} {
		if err := heartbeat.Publish(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		clock.Step(2 * time.Minute)
	}
	want := []map[string]any{
		{"type": "Online", "status": "True", "reason": "AsExpected", "lastHeartbeatTime": "2026-11-22T17:00:00Z", "lastTransitionTime": "2026-11-20T00:00:00Z"},
		{"type": "Online", "status": "False", "reason": "InformerUpdating", "message": "to 2.0", "lastHeartbeatTime": "2026-11-22T17:02:00Z", "lastTransitionTime": "2026-11-22T17:02:00Z"},
		{"type": "Online", "status": "False", "reason": "Degraded", "lastHeartbeatTime": "2026-11-22T17:04:00Z", "lastTransitionTime": "2026-11-22T17:02:00Z"},
		{"type": "Online", "status": "True", "reason": "AsExpected", "lastHeartbeatTime": "2026-11-22T17:06:00Z", "lastTransitionTime": "2026-11-22T17:06:00Z"},
	}
	if diff := cmp.Diff(want, *applied); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestHeartbeatRuns(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(start)
	client, applied := cluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	states := make(chan informersdk.InformerState)
	heartbeat := &informersdk.Heartbeat{Client: client, Informer: "mine", Clock: clock, State: func(ctx context.Context) informersdk.InformerState {
		select {
		case state := <-states:
			return state
		case <-ctx.Done():
			return informersdk.InformerState{}
		}
	}}
	ended := make(chan struct{})
	go func() {
		heartbeat.Run(ctx)
		close(ended)
	}()
	states <- informersdk.InformerState{}
	for !clock.HasWaiters() && t.Context().Err() == nil {
		goruntime.Gosched()
	}
	clock.Step(2 * time.Minute)
	states <- informersdk.InformerState{Reason: "Degraded"}
	clock.Step(2 * time.Minute)
	states <- informersdk.InformerState{Reason: "Degraded"}
	cancel()
	<-ended
	if len(*applied) < 2 {
		t.Errorf("%d conditions were published", len(*applied))
	}
}

func TestHeartbeatWithoutInformer(t *testing.T) {
	t.Parallel()
	client, applied := cluster(t)
	heartbeat := &informersdk.Heartbeat{Client: client, Informer: "another", Clock: clocktesting.NewFakeClock(start)}
	if err := heartbeat.Publish(t.Context(), informersdk.InformerState{}); err == nil || !strings.Contains(err.Error(), "another") || len(*applied) > 0 {
		t.Errorf("%v after %v", err, *applied)
	}
}
