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

// Start validates the options, sets the log of all libraries, and returns the access to the API server
// and the log. It is called once in a process.
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

// RESTConfig returns the access to the API server from the kubeconfig, or from the pod.
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

// explainKubeconfigError returns a readable error for a file that is not a kubeconfig: the error of client-go is about
// its own types.
func explainKubeconfigError(file string) error {
	_, err := clientcmd.LoadFromFile(file)
	var pathErr *fs.PathError
	if err == nil || errors.As(err, &pathErr) {
		return err
	}
	return errors.New("must be a kubeconfig with apiVersion: v1, kind: Config, clusters, users, and contexts")
}

// Logger returns the log that the flags configure.
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
	// The text of an error names its origin; a stack trace is for a panic.
	return zap.New(zap.Level(level), format(timeEncoder), zap.StacktraceLevel(zapcore.DPanicLevel))
}
