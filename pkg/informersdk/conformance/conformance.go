// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	kjson "sigs.k8s.io/json"

	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk/wire"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Target is the informer to check.
type Target struct {
	// URL is the address of the informer: https, a host, and an optional port.
	URL string
	// CA is a PEM bundle of CAs that sign the informer's certificate. It defaults to the system CAs.
	CA []byte
	// ServerName is the name expected in the certificate, such as update-informer.ns.svc. It defaults
	// to the host of the URL.
	ServerName string
	// Token authorizes the requests. If the informer needs no token, leave it empty; authentication is
	// then not checked.
	Token string
	// Release is the target release of the requests. It defaults to 4.99.0.
	Release string
	// MaxWait limits how long the informer may respond with Wait. It defaults to the controller's
	// limits: 2 minutes for the status and 10 minutes for a plan.
	MaxWait time.Duration
	// Clock defaults to the real clock.
	Clock clock.Clock
}

// Level is the severity of a finding.
type Level string

// Levels of findings.
const (
	// Error is for deviations that make the Update Status Controller reject a response or hide
	// insights from users.
	Error Level = "error"
	// Warning is for deviations that the controller tolerates.
	Warning Level = "warning"
)

// Finding is a deviation from the protocol.
type Finding struct {
	// Check is the name of the check, for example uids.
	Check string `json:"check"`
	// Level is the severity.
	Level Level `json:"level"`
	// Request is the request that shows the deviation, for example GET and a path.
	Request string `json:"request"`
	// Problem describes the deviation.
	Problem string `json:"problem"`
	// Change describes what to change in the informer.
	Change string `json:"change"`
}

// String formats the finding on a single line.
func (f Finding) String() string {
	return fmt.Sprintf("%s %s: %s: %s. %s.", f.Level, f.Check, f.Request, f.Problem, f.Change)
}

// Names of the checks.
const (
	CheckAuthentication = "authentication"
	CheckBody           = "body"
	CheckDiscovery      = "discovery"
	CheckFailure        = "failure"
	CheckLevels         = "levels"
	CheckMethods        = "methods"
	CheckPaths          = "paths"
	CheckResponse       = "response"
	CheckScopes         = "scopes"
	CheckSizes          = "sizes"
	CheckTexts          = "texts"
	CheckTimes          = "times"
	CheckUIDs           = "uids"
	CheckWait           = "wait"
)

// Limits of the controller.
const (
	statusWait         = hooksv1alpha.MaxStatusWaitSeconds * time.Second
	planWait           = hooksv1alpha.MaxPlanWaitSeconds * time.Second
	waitRetry          = hooksv1alpha.WaitRetrySeconds * time.Second
	defaultCallTimeout = hooksv1alpha.DefaultTimeoutSeconds * time.Second
	maxCallTimeout     = hooksv1alpha.MaxTimeoutSeconds * time.Second
)

// run is one run of all checks.
type run struct {
	target    Target
	client    *httpclient.Client
	anonymous *httpclient.Client
	clock     clock.Clock
	findings  []Finding
}

// Run checks an informer. It returns findings with suggested changes, in the order of the checks.
// It returns an error if the target is invalid or the context ends before all checks are complete.
func Run(ctx context.Context, target Target) ([]Finding, error) {
	if !strings.HasPrefix(target.URL, "https://") {
		return nil, fmt.Errorf("checking %q: the URL must start with https://", target.URL)
	}
	options := httpclient.Options{URL: target.URL, CA: target.CA, ServerName: target.ServerName, Timeout: maxCallTimeout}
	anonymous, err := httpclient.New(options)
	if err != nil {
		return nil, fmt.Errorf("checking %q: %w", target.URL, err)
	}
	defer anonymous.Close()
	if target.Token != "" {
		options.Token = func(context.Context) (string, error) { return target.Token, nil }
	}
	client, err := httpclient.New(options)
	if err != nil {
		return nil, fmt.Errorf("checking %q: %w", target.URL, err)
	}
	defer client.Close()
	r := &run{target: target, client: client, anonymous: anonymous, clock: target.Clock}
	if r.clock == nil {
		r.clock = clock.RealClock{}
	}
	r.target.Release = cmp.Or(target.Release, "4.99.0")
	for _, h := range r.checkDiscovery(ctx) {
		r.checkHandler(ctx, h)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("checking %s: %w", target.URL, err)
	}
	return slices.Compact(r.findings), nil
}

func (r *run) report(level Level, check, request, problem, change string) {
	r.findings = append(r.findings, Finding{Check: check, Level: level, Request: request, Problem: problem, Change: change})
}

// send sends a request, waits for the response as long as the controller would, and returns it. It
// does not report findings.
func (r *run) send(ctx context.Context, client *httpclient.Client, timeout time.Duration, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request := httpclient.Request{Method: method, Path: strings.Split(strings.TrimPrefix(path, "/"), "/"), Body: body}
	if body != nil {
		request.ContentType = "application/json"
	}
	return client.Do(ctx, request)
}

// code returns the status code of an unsuccessful response, or 0.
func code(err error) int {
	var status *httpclient.StatusError
	if errors.As(err, &status) {
		return status.Code
	}
	return 0
}

// checkDiscovery checks the listed handlers, their paths, and authentication. It returns the
// handlers.
func (r *run) checkDiscovery(ctx context.Context) []hooksv1alpha.Handler {
	const request = "GET " + hooksv1alpha.DiscoveryPath
	body, err := r.send(ctx, r.client, defaultCallTimeout, http.MethodGet, hooksv1alpha.DiscoveryPath, nil)
	if err != nil {
		r.report(Error, CheckDiscovery, request, err.Error(), discoveryChange(err))
		return nil
	}
	discovery, handlers, err := wire.DecodeDiscovery(body)
	if err != nil {
		r.report(Error, CheckDiscovery, request, text.Excerpt(err.Error()), "Add "+hooksv1alpha.HooksAPIVersion+" to spec.apiVersions, and list the handlers that are implemented in spec.handlers")
		if discovery.Kind == "" {
			return nil
		}
	}
	r.checkFields(CheckDiscovery, request, body, &hooksv1alpha.DiscoveryResponse{})
	if discovery.APIVersion != hooksv1alpha.HooksAPIVersion && discovery.APIVersion != hooksv1alpha.APIVersion || discovery.Kind != hooksv1alpha.DiscoveryResponseKind {
		r.report(Error, CheckDiscovery, request, fmt.Sprintf("the answer is %q of %q", text.Excerpt(discovery.Kind), text.Excerpt(discovery.APIVersion)), fmt.Sprintf("Set kind to %s and apiVersion to %s", hooksv1alpha.DiscoveryResponseKind, hooksv1alpha.APIVersion))
	}
	r.checkListedHandlers(request, discovery.Spec.Handlers)
	unknown := hooksv1alpha.PathPrefix + "unknown"
	if _, err := r.send(ctx, r.client, defaultCallTimeout, http.MethodGet, unknown, nil); code(err) != http.StatusNotFound {
		r.report(Warning, CheckPaths, "GET "+unknown, "the answer is "+outcome(err), "Answer 404 to a path that is not implemented")
	}
	if r.target.Token == "" {
		return handlers
	}
	if _, err := r.send(ctx, r.anonymous, defaultCallTimeout, http.MethodGet, hooksv1alpha.DiscoveryPath, nil); code(err) != http.StatusUnauthorized && code(err) != http.StatusForbidden {
		r.report(Error, CheckAuthentication, request+" without a token", "the answer is "+outcome(err), "Answer 401 unless a TokenReview accepts the bearer token for the audience "+hooksv1alpha.AudiencePrefix+"NAMESPACE.SERVICE")
	}
	return handlers
}

// discoveryChange suggests a change that makes discovery succeed.
func discoveryChange(err error) string {
	switch {
	case httpclient.IsTLSError(err):
		return "Serve a certificate for SERVICE.NAMESPACE.svc that the authorities of the UpdateInformer sign"
	case code(err) == http.StatusUnauthorized || code(err) == http.StatusForbidden:
		return "Accept the token, or pass one whose audience is " + hooksv1alpha.AudiencePrefix + "NAMESPACE.SERVICE and whose user is the Update Status Controller"
	case code(err) >= 300 && code(err) < 400:
		return "Serve the path itself: redirects are not followed"
	}
	return "Serve a DiscoveryResponse on exactly this path"
}

// outcome describes the result of a request.
func outcome(err error) string {
	switch {
	case err == nil:
		return "200"
	case code(err) != 0:
		return strconv.Itoa(code(err))
	}
	return text.Excerpt(err.Error())
}

func (r *run) checkListedHandlers(request string, handlers []hooksv1alpha.Handler) {
	listed := map[string]bool{}
	for i, h := range handlers {
		field := fmt.Sprintf("spec.handlers[%d]", i)
		switch {
		case h.Name != hooksv1alpha.HandlerStatus && h.Name != hooksv1alpha.HandlerPlan:
			r.report(Warning, CheckDiscovery, request, fmt.Sprintf("%s.name is %q", field, text.Excerpt(h.Name)), "Use the names status and plan")
		case listed[h.Name]:
			r.report(Error, CheckDiscovery, request, fmt.Sprintf("%s lists handler %s again, which is ignored", field, h.Name), "List each handler once, with all of its methods")
		default:
			r.checkListedHandler(request, field, h)
		}
		listed[h.Name] = true
	}
}

func (r *run) checkListedHandler(request, field string, h hooksv1alpha.Handler) {
	for _, method := range h.Methods {
		if method != http.MethodGet && method != http.MethodPost {
			r.report(Error, CheckMethods, request, fmt.Sprintf("%s.methods has %q", field, text.Excerpt(method)), "Use GET and POST, in upper case")
		}
	}
	if h.Name == hooksv1alpha.HandlerPlan && len(h.Methods) > 0 && !slices.Contains(h.Methods, http.MethodPost) {
		r.report(Error, CheckMethods, request, field+".methods lacks POST", "Answer plan requests by POST, and list it")
	}
	if h.TimeoutSeconds < 0 || time.Duration(h.TimeoutSeconds)*time.Second > maxCallTimeout {
		r.report(Warning, CheckTimes, request, fmt.Sprintf("%s.timeoutSeconds is %d", field, h.TimeoutSeconds), "Use 0 to 30 seconds, and answer Wait if it takes longer")
	}
}

// checkFields reports ignored fields and credentials in a response.
func (r *run) checkFields(check, request string, body []byte, into any) {
	if unknown, err := kjson.UnmarshalStrict(body, into); err == nil && len(unknown) > 0 {
		r.report(Warning, check, request, "the answer has fields that are ignored: "+text.Excerpt(unknown[0].Error()), "Correct the names of the fields, which are case-sensitive")
	}
	if text.Redact(string(body)) != string(body) || r.target.Token != "" && len(r.target.Token) >= minToken && bytes.Contains(body, []byte(r.target.Token)) {
		r.report(Error, CheckTexts, request, "the answer has a credential in a text, such as a token or a private key", "Never repeat what authorizes requests: insights are shown to more people")
	}
}

// minToken is the minimum length of a token that is unlikely to occur in text by chance.
const minToken = 16

// requestBody returns the request for a handler.
func (r *run) requestBody(kind string) []byte {
	body, err := json.Marshal(hooksv1alpha.UpdateInsightsRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: hooksv1alpha.APIVersion, Kind: kind},
		Spec:     hooksv1alpha.RequestSpec{ClusterID: "00000000-0000-4000-8000-000000000000", ControlPlaneVersion: "4.20.5", TargetControlPlaneVersion: r.target.Release},
	})
	if err != nil {
		return nil // strings can always be encoded
	}
	return body
}
