// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Start validates the options, configures logging for all libraries, and returns the client
// configuration and the logger. It must be called only once per process.
func (o *Options) Start(userAgent string) (*rest.Config, logr.Logger, error) {
	if err := o.Validate(); err != nil {
		return nil, logr.Logger{}, err
	}
	restConfig, err := o.RESTConfig(userAgent)
	if err != nil {
		return nil, logr.Logger{}, err
	}
	log := o.Logger()
	SetLoggers(log)
	return restConfig, log, nil
}

// RESTConfig returns the client configuration from the kubeconfig or the pod.
func (o *Options) RESTConfig(userAgent string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	restConfig, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err) && o.Kubeconfig != "":
		return nil, fmt.Errorf("--kubeconfig %q: the file has no access to a cluster", o.Kubeconfig)
	case clientcmd.IsEmptyConfig(err):
		return nil, errors.New("--kubeconfig: required outside of a pod without $KUBECONFIG and ~/.kube/config")
	case err != nil:
		if explained := explainKubeconfigError(o.Kubeconfig); o.Kubeconfig != "" && explained != nil {
			err = explained
		}
		return nil, fmt.Errorf("--kubeconfig %q: %w", o.Kubeconfig, err)
	}
	restConfig.UserAgent = userAgent
	restConfig.QPS = -1 // the API server throttles; client-go's default of 5 a second would delay records
	return restConfig, nil
}

// explainKubeconfigError returns a readable error if the file is not a kubeconfig. client-go's own
// error only mentions its Go types.
func explainKubeconfigError(file string) error {
	_, err := clientcmd.LoadFromFile(file)
	var pathErr *fs.PathError
	if err == nil || errors.As(err, &pathErr) {
		return err
	}
	return errors.New("must be a kubeconfig with apiVersion: v1, kind: Config, clusters, users, and contexts")
}

// Logger returns the logger configured by the flags.
func (o *Options) Logger() logr.Logger {
	level := zapcore.InfoLevel
	switch o.LogLevel {
	case "debug":
		level = zapcore.DebugLevel
	case "error":
		level = zapcore.ErrorLevel
	}
	format := zap.JSONEncoder
	if o.LogFormat == "console" {
		format = zap.ConsoleEncoder
	}
	timeEncoder := func(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.RFC3339NanoTimeEncoder }
	// Error messages name their origin. Stack traces are only for panics.
	return zap.New(zap.Level(level), format(timeEncoder), zap.StacktraceLevel(zapcore.DPanicLevel))
}
