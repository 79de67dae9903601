// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func parseFlags(t *testing.T, args ...string) Options {
	t.Helper()
	var o Options
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	o.Bind(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestFlagsSetOptions(t *testing.T) {
	t.Parallel()
	want := Options{
		Namespace: "managed-upgrade-operator", MetricsBind: ":8443", MetricsSecure: true,
		HealthBind: ":8081", LeaderElection: DefaultLeaderElection(), LogLevel: "info", LogFormat: "json",
	}
	got := parseFlags(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("without flags (-want +got):\n%s", diff)
	}
	if err := got.Validate(); err != nil {
		t.Errorf("without flags: %v", err)
	}
	want = Options{
		Kubeconfig: "k", Namespace: "n", WatchNamespaces: []string{"a", "b"}, ConfigFile: "c", MetricsBind: "127.0.0.1:1", MetricsCerts: "m",
		HealthBind: "0", LogLevel: "debug", LogFormat: "console",
		LeaderElection: LeaderElection{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second},
	}
	got = parseFlags(t, "--kubeconfig=k", "--operator-namespace=n", "--watch-namespaces=a,b", "--config=c", "--metrics-bind-address=127.0.0.1:1", "--metrics-secure=false",
		"--metrics-cert-path=m", "--health-probe-bind-address=0", "--leader-elect=false",
		"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=2s", "--log-level=debug", "--log-format=console")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("with all flags (-want +got):\n%s", diff)
	}
}

func TestOptionsAreValidated(t *testing.T) {
	t.Parallel()
	certificates := t.TempDir()
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.WriteFile(filepath.Join(certificates, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	half := t.TempDir()
	if err := os.WriteFile(filepath.Join(half, "tls.crt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const (
		address   = "is not an address such as :8443 or 127.0.0.1:8443, nor 0 for none"
		loopback  = "is not a loopback address, and with --metrics-secure=false it must be one, for example 127.0.0.1:8080"
		namespace = "is not the name of a namespace: up to 63 lower case letters, digits, and hyphens"
		folder    = "--metrics-cert-path: must be a directory with tls.crt and tls.key, or empty"
	)
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"a port":                        {args: []string{"--metrics-bind-address=:1"}},
		"an IPv4 address":               {args: []string{"--metrics-bind-address=0.0.0.0:8443"}},
		"an IPv6 address":               {args: []string{"--health-probe-bind-address=[::1]:8081"}},
		"no metrics":                    {args: []string{"--metrics-bind-address=0"}},
		"no metrics, not even insecure": {args: []string{"--metrics-bind-address=0", "--metrics-secure=false"}},
		"no probes":                     {args: []string{"--health-probe-bind-address=0"}},
		"insecure metrics here":         {args: []string{"--metrics-secure=false", "--metrics-bind-address=127.0.0.1:0"}},
		"insecure metrics on localhost": {args: []string{"--metrics-secure=false", "--metrics-bind-address=localhost:8080"}},
		"insecure metrics here by IPv6": {args: []string{"--metrics-secure=false", "--metrics-bind-address=[::1]:8080"}},
		"certificates":                  {args: []string{"--metrics-cert-path=" + certificates}},
		"certificates that come later":  {args: []string{"--metrics-cert-path=" + t.TempDir()}},
		"the longest namespace":         {args: []string{"--operator-namespace=" + strings.Repeat("a", 63)}},
		"every log level and format":    {args: []string{"--log-level=error", "--log-format=console"}},
		"times of client-go":            {args: []string{"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=2s"}},
		"no election, no times":         {args: []string{"--leader-elect=false", "--leader-elect-retry-period=0s"}},

		"an empty address of the metrics":   {[]string{"--metrics-bind-address="}, []string{`--metrics-bind-address: "" ` + address}},
		"an empty address of the probes":    {[]string{"--health-probe-bind-address="}, []string{`--health-probe-bind-address: "" ` + address}},
		"a port without a colon":            {[]string{"--metrics-bind-address=8443"}, []string{`--metrics-bind-address: "8443" ` + address}},
		"a port that is too large":          {[]string{"--health-probe-bind-address=:65536"}, []string{`--health-probe-bind-address: ":65536" ` + address}},
		"a port that is a word":             {[]string{"--health-probe-bind-address=:health"}, []string{`--health-probe-bind-address: ":health" ` + address}},
		"a negative port":                   {[]string{"--health-probe-bind-address=:-1"}, []string{address}},
		"a name instead of an address":      {[]string{"--metrics-bind-address=example.com:80"}, []string{address}},
		"insecure metrics everywhere":       {[]string{"--metrics-secure=false"}, []string{"--metrics-bind-address: :8443 " + loopback}},
		"insecure metrics on one address":   {[]string{"--metrics-secure=false", "--metrics-bind-address=10.0.0.1:80"}, []string{"--metrics-bind-address: 10.0.0.1:80 " + loopback}},
		"certificates that are not there":   {[]string{"--metrics-cert-path=/nowhere"}, []string{folder, "/nowhere"}},
		"a certificate without its key":     {[]string{"--metrics-cert-path=" + half}, []string{folder, half + "/tls.key"}},
		"a namespace in upper case":         {[]string{"--operator-namespace=Upgrades"}, []string{`--operator-namespace: "Upgrades" ` + namespace}},
		"an empty namespace":                {[]string{"--operator-namespace="}, []string{`--operator-namespace: "" ` + namespace}},
		"a namespace that is too long":      {[]string{"--operator-namespace=" + strings.Repeat("a", 64)}, []string{namespace}},
		"a variable that was not replaced":  {[]string{"--operator-namespace=$(NAMESPACE)"}, []string{`--operator-namespace: "$(NAMESPACE)" ` + namespace}},
		"a watched namespace in upper case": {[]string{"--watch-namespaces=a,B"}, []string{`--watch-namespaces: "B" ` + namespace + ", or * for all"}},
		"all namespaces and one":            {[]string{"--watch-namespaces=a,*"}, []string{"--watch-namespaces: * stands alone"}},
		"a log level":                       {[]string{"--log-level=warn"}, []string{`--log-level: is "warn", must be debug, info, or error`}},
		"a log format":                      {[]string{"--log-format=text"}, []string{`--log-format: is "text", must be json or console`}},
		"a lease that ends too early":       {[]string{"--leader-elect-lease-duration=107s"}, []string{"--leader-elect-lease-duration: is 1m47s, must be longer than the renew deadline, 1m47s"}},
		"a deadline of one retry":           {[]string{"--leader-elect-retry-period=90s"}, []string{"--leader-elect-renew-deadline: is 1m47s, must be longer than 1m48s, 1.2 times the retry period"}},
		"no retry period":                   {[]string{"--leader-elect-retry-period=0s"}, []string{"--leader-elect-retry-period: is 0s, must be at least 1s"}},
		"everything at once": {
			[]string{"--operator-namespace=A", "--metrics-bind-address=x", "--health-probe-bind-address=y", "--log-level=z", "--log-format=", "--metrics-cert-path=/nowhere"},
			[]string{"--operator-namespace: ", "--metrics-bind-address: ", "--health-probe-bind-address: ", "--log-level: ", "--log-format: ", "--metrics-cert-path: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := parseFlags(t, tc.args...)
			err := o.Validate()
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q: %v", want, err)
				}
			}
		})
	}
}

// misnamed returns the path of a missing file in a folder that contains a file with another name.
func misnamed(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "config.yml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, "config.yaml")
}

func TestReadConfig(t *testing.T) {
	t.Parallel()
	parse := func(data []byte) (string, error) {
		if string(data) == "invalid" {
			return "", errors.New("is invalid")
		}
		return string(data), nil
	}
	o := parseFlags(t)
	if got, err := ReadConfig(&o, "default", parse); err != nil || got != "default" {
		t.Errorf("without a file: %q, %v", got, err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	o = parseFlags(t, "--config="+file)
	if err := os.Mkdir(filepath.Join(filepath.Dir(file), "..data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadConfig(&o, "default", parse); err != nil || got != "default" {
		t.Errorf("without the ConfigMap: %q, %v", got, err)
	}
	for name, wrong := range map[string]string{"folder is missing": "/nowhere/config.yaml", "folder has another file": misnamed(t)} {
		o := parseFlags(t, "--config="+wrong)
		if got, err := ReadConfig(&o, "default", parse); err == nil || got != "" {
			t.Errorf("%s: got %q, want an error", name, got)
		}
	}
	for text, want := range map[string]string{"valid": "", "invalid": "--config " + file + ": is invalid", strings.Repeat("x", maxConfigBytes+1): "--config " + file + ": must be a regular file of at most 1048576 bytes"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadConfig(&o, "default", parse)
		switch {
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("got %v, want %s", err, want)
		case want == "" && (err != nil || got != text):
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestWatchedNamespaces(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string][]string{
		"":                              {"upgrades"},
		"--watch-namespaces=":           {"upgrades"},
		"--watch-namespaces=a,upgrades": {"a", "upgrades"},
		"--watch-namespaces=*":          nil,
	} {
		o := parseFlags(t, slices.DeleteFunc([]string{"--operator-namespace=upgrades", flags}, func(f string) bool { return f == "" })...)
		if err := o.Validate(); err != nil {
			t.Errorf("%s: %v", flags, err)
		}
		if diff := cmp.Diff(want, o.Watched()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", flags, diff)
		}
	}
}
