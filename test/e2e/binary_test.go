// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

// program returns the path of the operator's executable.
func program(t *testing.T) string {
	t.Helper()
	bin, err := controlplane.FindBinDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.RequirePrograms(bin, "operator"); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(bin, "operator")
}

// runOperator runs the operator without access to a cluster, until it ends.
func runOperator(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, program(t), args...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

func TestOperator_reports_startup_errors_on_one_line(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	nowhere := filepath.Join(folder, "nowhere")
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, &rest.Config{Host: "https://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	head := "apiVersion: config.upgrade.managed.openshift.io/v1alpha1\nkind: OperatorConfig\n"

	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"a flag that is not known":          {[]string{"--nope"}, []string{"unknown flag: --nope", `"operator --help" lists the flags`}},
		"a flag without its value":          {[]string{"--config"}, []string{"flag needs an argument: --config"}},
		"an argument that is no flag":       {[]string{"start"}, []string{`unexpected argument "start"`, `"operator --help" lists the flags`}},
		"a switch that is neither":          {[]string{"--leader-elect=maybe"}, []string{`--leader-elect: is "maybe", must be true or false`}},
		"an address that is none":           {[]string{"--metrics-bind-address=here"}, []string{`--metrics-bind-address: "here" is not an address such as :8443`}},
		"several flags at once":             {[]string{"--log-level=loud", "--log-format=prose"}, []string{`--log-level: is "loud", must be debug, info, or error; --log-format: is "prose", must be json or console`}},
		"certificates that are not there":   {[]string{"--metrics-cert-path=" + nowhere}, []string{"--metrics-cert-path: must be a directory with tls.crt and tls.key, or empty"}},
		"no access to a cluster":            {nil, []string{"--kubeconfig: required outside of a pod"}},
		"a kubeconfig that is not there":    {[]string{"--kubeconfig=" + nowhere}, []string{`--kubeconfig "` + nowhere + `"`, "no such file"}},
		"a kubeconfig that is none":         {[]string{"--kubeconfig=" + file("prose", "once upon a time")}, []string{"--kubeconfig", "prose"}},
		"an API server that is not there":   {[]string{"--kubeconfig=" + kubeconfig}, []string{"https://127.0.0.1:1", "connection refused"}},
		"a configuration that is not there": {[]string{"--kubeconfig=" + kubeconfig, "--config=" + nowhere}, []string{"--config", nowhere, "no such file"}},
		"a configuration that is wrong": {
			[]string{"--kubeconfig=" + kubeconfig, "--config=" + file("wrong.yaml", head+"upgradeWindow: 30\nworkers:\n  fastAfter: 1h\n")},
			[]string{"--config", "wrong.yaml", `upgradeWindow: Invalid value: "30": must be a duration with its unit`, "workers.fastAfter: Invalid value: unknown field"},
		},
		"a configuration that is not YAML": {[]string{"--kubeconfig=" + kubeconfig, "--config=" + file("bad.yaml", head+"workers: [\n")}, []string{"--config", "bad.yaml", "line"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runOperator(t, tc.args...)
			if code != 1 || stdout != "" {
				t.Errorf("exit code %d and stdout %q, want 1 and nothing", code, stdout)
			}
			if !strings.HasPrefix(stderr, "operator: ") || strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") {
				t.Errorf("stderr is not one line with the name of the program: %q", stderr)
			}
			for _, want := range tc.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr does not say %q: %s", want, stderr)
				}
			}
		})
	}
}

func TestOperator_help(t *testing.T) {
	t.Parallel()
	code, help, stderr := runOperator(t, "--help")
	if code != 0 || stderr != "" {
		t.Errorf("--help: exit code %d, stderr %q", code, stderr)
	}
	var options manager.Options
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	options.Bind(flags)
	flags.VisitAll(func(flag *pflag.Flag) {
		if !strings.Contains(help, "--"+flag.Name+" ") || !strings.Contains(help, flag.Usage) {
			t.Errorf("--help does not say of --%s: %s", flag.Name, flag.Usage)
		}
	})
	if code, version, _ := runOperator(t, "--version"); code != 0 || len(strings.Fields(version)) != 3 || !strings.HasPrefix(version, "operator version ") {
		t.Errorf("--version: exit code %d, %q", code, version)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, script, _ := runOperator(t, "completion", shell); code != 0 || !strings.Contains(script, "operator") {
			t.Errorf("completion %s: exit code %d, %d bytes", shell, code, len(script))
		}
	}
}

// replica is an operator that runs beside an API server, with the permissions of its
// ServiceAccount.
type replica struct {
	process        *childprocess.Process
	log            string
	probes, metric string
}

// startReplica starts an operator. It is terminated at the end of the test, and must then end
// without an error.
func startReplica(t *testing.T, kubeconfig string, flags ...string) *replica {
	t.Helper()
	return startProgram(t, program(t), kubeconfig, flags...)
}

// startProgram starts a program as startReplica starts the operator.
func startProgram(tb testing.TB, path, kubeconfig string, flags ...string) *replica {
	tb.Helper()
	r := &replica{log: filepath.Join(tb.TempDir(), "operator.log"), probes: freeAddress(tb), metric: freeAddress(tb)}
	process, err := childprocess.Start(childprocess.Command{
		Path: path,
		Args: append([]string{
			"--kubeconfig=" + kubeconfig, "--metrics-bind-address=" + r.metric, "--health-probe-bind-address=" + r.probes,
		}, flags...),
		Log: r.log,
	})
	if err != nil {
		tb.Fatal(err)
	}
	r.process = process
	tb.Cleanup(func() {
		if err := process.Stop(time.Minute); err != nil {
			tb.Error(err)
		}
		if tb.Failed() {
			tb.Logf("the operator's log:\n%s", r.readLog(tb))
		}
	})
	return r
}

func freeAddress(tb testing.TB) string {
	tb.Helper()
	port, err := controlplane.FreePort()
	if err != nil {
		tb.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func (r *replica) readLog(tb testing.TB) string {
	tb.Helper()
	return readFile(tb, r.log)
}

// probe returns the status code of a probe, or 0 without a response.
func (r *replica) probe(ctx context.Context, path string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.probes+path, http.NoBody)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

// scrape requests the metrics, with a token unless it is empty.
func (r *replica) scrape(t *testing.T, token string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.metric+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	selfSigned := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: selfSigned}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

func waitUntil(tb testing.TB, what string, is func(context.Context) bool) {
	tb.Helper()
	err := wait.PollUntilContextTimeout(tb.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return is(ctx), nil
	})
	if err != nil {
		tb.Fatalf("waiting until %s: %v", what, err)
	}
}

// account writes a kubeconfig with the permissions of a ServiceAccount.
func (s *server) account(tb testing.TB, name string) (kubeconfig, token string) {
	tb.Helper()
	access, err := s.ServiceAccountConfig(tb.Context(), home, name)
	if err != nil {
		tb.Fatal(err)
	}
	kubeconfig = filepath.Join(tb.TempDir(), name+".kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, access); err != nil {
		tb.Fatal(err)
	}
	return kubeconfig, access.BearerToken
}

// openshift creates the kinds of OpenShift that the manifests of the operator refer to, except
// some, and the namespace of its monitoring.
func (s *server) openshift(tb testing.TB, without ...string) {
	tb.Helper()
	objects, err := manifests.Read(crds.Files)
	if err != nil {
		tb.Fatal(err)
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return slices.Contains(without, o.GetName()) })
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName("openshift-monitoring")
	s.apply(tb, append(objects, namespace))
}

func TestOperator_runs_with_its_deployed_permissions(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	server.openshift(t)
	server.apply(t, kustomized(t))
	kubeconfig, token := server.account(t, home)

	first := startReplica(t, kubeconfig)
	ready := func(ctx context.Context) bool { return first.probe(ctx, "/readyz") == http.StatusOK }
	waitUntil(t, "the first replica is ready", ready)
	if got := first.probe(t.Context(), "/healthz"); got != http.StatusOK {
		t.Errorf("a replica that is ready answers %d to /healthz", got)
	}
	holder := func(ctx context.Context) string {
		var lease coordinationv1.Lease
		key := client.ObjectKey{Namespace: home, Name: "managed-upgrade-operator-leader"}
		if err := server.client.Get(ctx, key, &lease); err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	waitUntil(t, "the first replica leads", func(ctx context.Context) bool { return holder(ctx) != "" })
	leader := holder(t.Context())

	certificates := t.TempDir()
	second := startReplica(t, kubeconfig, "--metrics-cert-path="+certificates)
	waitUntil(t, "the second replica is ready", func(ctx context.Context) bool { return second.probe(ctx, "/readyz") == http.StatusOK })
	if got := holder(t.Context()); got != leader {
		t.Errorf("%s leads, and %s did not go", got, leader)
	}

	server.checkMetricsAccess(t, first, token)
	second.checkCertificateReload(t, certificates)

	waitUntil(t, "the caches of the first replica are synced: a stop before that is logged as errors", func(context.Context) bool {
		log := first.readLog(t)
		started := strings.Count(log, `"msg":"Starting workers"`)
		return started > 0 && started == strings.Count(log, `"msg":"Starting Controller"`)
	})
	if err := first.process.Stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the second replica leads", func(ctx context.Context) bool { h := holder(ctx); return h != "" && h != leader })
	waitUntil(t, "the change of leaders is published as an Event", func(ctx context.Context) bool {
		var events corev1.EventList
		if err := server.client.List(ctx, &events, client.InNamespace(home)); err != nil {
			return false
		}
		return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "LeaderElection" })
	})
	for _, replica := range []*replica{first, second} {
		for line := range strings.Lines(replica.readLog(t)) {
			ended := strings.Contains(line, "error received after stop sequence was engaged") // by SIGTERM; the election may end first
			if strings.Contains(line, "forbidden") || strings.Contains(line, `"level":"error"`) && !ended && !strings.Contains(line, "Authentication failed") {
				t.Errorf("the log has: %s", line)
			}
		}
	}
	if diff := cmp.Diff([]string(nil), server.forbidden(t, home)); diff != "" {
		t.Errorf("forbidden requests (-want +got):\n%s", diff)
	}
}

// checkMetricsAccess requests the metrics of a replica with different credentials.
func (s *server) checkMetricsAccess(t *testing.T, r *replica, own string) {
	t.Helper()
	for name, permitted := range map[string]bool{"reader": true, "stranger": false} {
		if err := s.client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}}); err != nil {
			t.Fatal(err)
		}
		if !permitted {
			continue
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "managed-upgrade-operator-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: name}},
		}
		if err := s.client.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "the API server knows that "+name+" may read the metrics", func(ctx context.Context) bool {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:                  "system:serviceaccount:" + home + ":" + name,
				NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
			}}
			return s.client.Create(ctx, review) == nil && review.Status.Allowed
		})
	}
	_, reader := s.account(t, "reader")
	_, stranger := s.account(t, "stranger")
	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"no token":                     {"", http.StatusUnauthorized},
		"invalid token":                {"false", http.StatusUnauthorized},
		"token without the permission": {stranger, http.StatusForbidden},
		"the operator itself is":       {own, http.StatusForbidden},
		"token with the permission":    {reader, http.StatusOK},
	} {
		status, body := r.scrape(t, tc.token)
		if status != tc.want {
			t.Errorf("%s: got %d, want %d", name, status, tc.want)
		}
		if served := strings.Contains(body, "controller_runtime_"); served != (tc.want == http.StatusOK) {
			t.Errorf("%s: it is %t that metrics were served", name, served)
		}
		if tc.want != http.StatusOK {
			continue
		}
		// The series that alerts query and that also exist without an upgrade.
		for _, series := range []string{
			"leader_election_master_status{name=\"managed-upgrade-operator-leader\"} 1", "managed_upgrade_configuration_valid 1",
			"managed_upgrade_notification_failures_total{channel=\"events\"} 0", "managed_upgrade_notification_failures_total{channel=\"webhook\"} 0",
		} {
			if !strings.Contains(body, "\n"+series+"\n") {
				t.Errorf("no series %s", series)
			}
		}
	}
}

// checkCertificateReload writes the certificate of the metrics into its folder while the replica
// runs.
func (r *replica) checkCertificateReload(t *testing.T, folder string) {
	t.Helper()
	const name = "metrics.svc"
	certificate, key, err := certutil.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(certificate)
	trusted := func() error {
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: trust, ServerName: name}}
		c, err := dialer.DialContext(t.Context(), "tcp", r.metric)
		if err == nil {
			err = c.Close()
		}
		return err
	}
	var untrusted *tls.CertificateVerificationError
	if err := trusted(); !errors.As(err, &untrusted) {
		t.Errorf("without a certificate: got %v, want an untrusted one", err)
	}
	for file, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := trusted(); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
}

// forbidden returns the requests of a ServiceAccount that were rejected for lack of a permission,
// from the audit log.
func (s *server) forbidden(tb testing.TB, account string) []string {
	tb.Helper()
	var found []string
	for line := range strings.Lines(readFile(tb, s.AuditLog())) {
		var event struct {
			Verb           string `json:"verb"`
			RequestURI     string `json:"requestURI"`
			User           struct{ Username string }
			ResponseStatus struct{ Code int }
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			continue // the last line may be incomplete
		}
		if event.ResponseStatus.Code == http.StatusForbidden && event.User.Username == "system:serviceaccount:"+home+":"+account {
			found = append(found, event.Verb+" "+event.RequestURI)
		}
	}
	return found
}

func TestOperator_is_not_ready_before_its_caches(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	server.openshift(t, "clusterversions.config.openshift.io")
	server.apply(t, read(t, filepath.Join(deployFolder, "operator")))
	kubeconfig, _ := server.account(t, home)
	r := startReplica(t, kubeconfig, "--leader-elect=false")

	waitUntil(t, "it is alive", func(ctx context.Context) bool { return r.probe(ctx, "/healthz") == http.StatusOK })
	waits := func(kind string) {
		t.Helper()
		waitUntil(t, "the log says that it waits for "+kind, func(ctx context.Context) bool {
			if status := r.probe(ctx, "/readyz"); status == http.StatusOK {
				t.Fatalf("it is ready without %s", kind)
			}
			lines := strings.Split(strings.TrimSpace(r.readLog(t)), "\n")
			return slices.ContainsFunc(lines, func(line string) bool {
				return strings.Contains(line, `"msg":"not ready"`) && strings.Contains(line, kind)
			})
		})
	}
	waits("v1alpha1.UpgradeConfig")
	server.apply(t, read(t, filepath.Join(deployFolder, "crds")))
	waits("v1.ClusterVersion")
	server.openshift(t)
	waitUntil(t, "it is ready", func(ctx context.Context) bool { return r.probe(ctx, "/readyz") == http.StatusOK })

	var first struct{ Msg, Version, APIServer string }
	line, _, _ := strings.Cut(r.readLog(t), "\n")
	if err := json.Unmarshal([]byte(line), &first); err != nil {
		t.Fatalf("the first line of the log is %q: %v", line, err)
	}
	_, version, _ := runOperator(t, "--version")
	if first.Msg != "starting" || version != "operator version "+first.Version+"\n" || !strings.HasPrefix(first.APIServer, "https://127.0.0.1:") {
		t.Errorf("the first line of the log is %s, and the program is %s", line, version)
	}
}

func TestOperator_is_not_ready_without_permissions(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	server.openshift(t)
	server.apply(t, kustomized(t))
	if err := server.client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "powerless"}}); err != nil {
		t.Fatal(err)
	}
	// It must not run beside the former operator, so it ends if it cannot look for it.
	for _, obj := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "looks-for-the-former-operator"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "looks-for-the-former-operator"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "looks-for-the-former-operator"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: "powerless"}},
		},
	} {
		if err := server.client.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	powerless, _ := server.account(t, "powerless")
	r := startReplica(t, powerless, "--leader-elect=false")
	waitUntil(t, "it is alive", func(ctx context.Context) bool { return r.probe(ctx, "/healthz") == http.StatusOK })
	waitUntil(t, "the log says what is forbidden", func(context.Context) bool { return strings.Contains(r.readLog(t), "nodes is forbidden") })
	if got := r.probe(t.Context(), "/readyz"); got != http.StatusInternalServerError {
		t.Errorf("the answer to /readyz is %d", got)
	}
}

func TestOperator_ends_on_SIGTERM(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	server.openshift(t)
	server.apply(t, kustomized(t))
	kubeconfig, _ := server.account(t, home)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		r := &replica{probes: freeAddress(t)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, program(t), "--kubeconfig="+kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address="+r.probes)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "it is ready", func(ctx context.Context) bool { return r.probe(ctx, "/readyz") == http.StatusOK })
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("after %s it ends with %v", signal, err)
		}
	}
}
