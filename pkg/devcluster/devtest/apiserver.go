// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package devtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

// installTimeout limits the start of an API server and the installation of kinds.
const installTimeout = 3 * time.Minute

// discoveryInterval is the interval between attempts to discover kinds.
const discoveryInterval = 100 * time.Millisecond

// APIServer is a real API server for tests of API kinds. No controllers run.
type APIServer struct {
	client.Client

	// Namespace is the namespace of the objects. It is created, and kubectl uses it by default.
	Namespace string

	kubectl, kubeconfig string
	config              *rest.Config
}

// RESTConfig returns the client configuration for the API server.
func (s *APIServer) RESTConfig() *rest.Config { return s.config }

// Kubeconfig returns the path of an administrator's kubeconfig.
func (s *APIServer) Kubeconfig() string { return s.kubeconfig }

// Main starts the API server, installs kinds, runs the tests of a package, and returns the exit
// code for it.
func (s *APIServer) Main(ctx context.Context, m *testing.M, install func(context.Context) error) int {
	code, err := s.run(ctx, m, install)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func (s *APIServer) run(ctx context.Context, m *testing.M, install func(context.Context) error) (code int, err error) {
	dir, err := os.MkdirTemp("", "apiserver")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	running, err := controlplane.Start(ctx, controlplane.Options{Dir: dir, WithoutControllerManager: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()
	s.kubectl, s.kubeconfig = filepath.Join(running.BinDir(), "kubectl"), filepath.Join(dir, "kubeconfig")
	if err := running.Kubeconfig(s.kubeconfig); err != nil {
		return 0, err
	}
	s.config = running.RESTConfig()
	if s.Client, err = manifests.Client(s.config); err != nil {
		return 0, err
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": s.Namespace},
	}}
	if err := manifests.Apply(ctx, s, []*unstructured.Unstructured{namespace}); err != nil {
		return 0, err
	}
	if err := install(ctx); err != nil {
		return 0, fmt.Errorf("installing the kinds: %w", err)
	}
	return m.Run(), nil
}

// Install applies the objects in YAML files.
func (s *APIServer) Install(ctx context.Context, files fs.FS) error {
	objects, err := manifests.Read(files)
	if err != nil {
		return err
	}
	return manifests.Apply(ctx, s, objects)
}

// InstallAsUser applies the kustomization in a folder with kubectl, as a user would: first
// client-side, then its files server-side.
func (s *APIServer) InstallAsUser(ctx context.Context, folder string) error {
	if printed, err := s.Kubectl(ctx, "apply", "--server-side=false", "--kustomize", folder).CombinedOutput(); err != nil {
		return fmt.Errorf("applying %s: %w: %s", folder, err, printed)
	}
	return s.Install(ctx, os.DirFS(folder))
}

// AwaitKinds waits until kubectl discovers the given number of kinds. selector is a flag of
// "kubectl api-resources".
func (s *APIServer) AwaitKinds(ctx context.Context, kinds int, selector string) error {
	return wait.PollUntilContextCancel(ctx, discoveryInterval, true, func(ctx context.Context) (bool, error) {
		printed, err := s.Kubectl(ctx, "api-resources", selector, "--output=name", "--cached=false").Output()
		return err == nil && len(strings.Fields(string(printed))) == kinds, nil
	})
}

// Kubectl returns a kubectl command as a user would run it, with its own cache.
func (s *APIServer) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	return s.command(ctx, s.kubectl, args...)
}

// KubectlUpdate does the same for kubectl-update. "make build" must have built it.
func (s *APIServer) KubectlUpdate(ctx context.Context, args ...string) *exec.Cmd {
	return s.command(ctx, s.kubectl+"-update", args...)
}

func (s *APIServer) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cache := filepath.Join(filepath.Dir(s.kubeconfig), "cache")
	common := []string{"--kubeconfig", s.kubeconfig, "--cache-dir", cache, "--namespace", s.Namespace}
	return exec.CommandContext(ctx, program, append(common, args...)...) //nolint:gosec // a program of the control plane
}

// MustCreate creates an object and fails on unknown fields.
func (s *APIServer) MustCreate(tb testing.TB, object *unstructured.Unstructured) {
	tb.Helper()
	if err := s.Create(tb.Context(), object, client.FieldValidation("Strict")); err != nil {
		tb.Fatal(err)
	}
}

// MustUpdateStatus replaces the status of an object and fails on unknown fields.
func (s *APIServer) MustUpdateStatus(tb testing.TB, object *unstructured.Unstructured, status any) {
	tb.Helper()
	object.Object["status"] = status
	if err := s.Status().Update(tb.Context(), object, client.FieldValidation("Strict")); err != nil {
		tb.Fatal(err)
	}
}

// RunKubectl runs kubectl as a user would and returns its output.
func (s *APIServer) RunKubectl(tb testing.TB, input string, args ...string) string {
	tb.Helper()
	cmd := s.Kubectl(tb.Context(), args...)
	cmd.Stdin = strings.NewReader(input)
	printed, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, printed)
	}
	return string(printed)
}

// CheckExplain checks that "kubectl explain" documents each field and prints the given words. The
// API server serves a new kind before it documents it, so the check waits until kubectl knows the
// kinds.
func (s *APIServer) CheckExplain(t *testing.T, fields map[string]string) {
	t.Helper()
	for _, kind := range slices.Sorted(maps.Keys(kindsOf(fields))) {
		err := wait.PollUntilContextTimeout(t.Context(), discoveryInterval, time.Minute, true, func(ctx context.Context) (bool, error) {
			return s.Kubectl(ctx, "explain", kind).Run() == nil, nil
		})
		if err != nil {
			t.Fatalf("waiting until kubectl explains %s: %v", kind, err)
		}
	}
	for field, want := range fields {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			if printed := strings.Join(strings.Fields(s.RunKubectl(t, "", "explain", field)), " "); !strings.Contains(printed, want) {
				t.Errorf("kubectl explain %s does not contain %q:\n%s", field, want, printed)
			}
		})
	}
}

// kindsOf returns the kinds of fields in the form that "kubectl explain" takes.
func kindsOf(fields map[string]string) map[string]bool {
	kinds := map[string]bool{}
	for field := range fields {
		kind, _, _ := strings.Cut(field, ".")
		kinds[kind] = true
	}
	return kinds
}

// ParseTable returns the cells of a printed table without the padding.
func ParseTable(printed string) [][]string {
	var rows [][]string
	for line := range strings.Lines(printed) {
		var row []string
		for cell := range strings.SplitSeq(line, "  ") {
			if cell = strings.TrimSpace(cell); cell != "" {
				row = append(row, cell)
			}
		}
		rows = append(rows, row)
	}
	return rows
}
