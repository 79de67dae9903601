// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package httpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// maxFileBytes is the maximum size of a file with CA certificates or a token.
	maxFileBytes = 64 << 10
	// maxBundleBytes is the maximum size of the file with the CAs trusted by a cluster. A ConfigMap
	// cannot hold more.
	maxBundleBytes = 1 << 20
)

// serviceAccountDirs are the directories where a kubelet mounts the token of the pod's
// ServiceAccount. In most images, the first one links to the second one.
var serviceAccountDirs = []string{"/var/run/secrets/kubernetes.io/serviceaccount", "/run/secrets/kubernetes.io/serviceaccount"}

// readFile returns the content of a regular file of at most limit bytes. For any other file, such
// as a pipe or a device, it returns an error without blocking.
func readFile(name string, limit int64) ([]byte, fs.FileInfo, error) {
	file, err := os.OpenFile(filepath.Clean(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > limit {
		return nil, nil, fmt.Errorf("%s is longer than %d bytes", name, limit)
	}
	return data, info, nil
}

// token returns the current token, because tokens of ServiceAccounts are replaced every hour. It is
// empty if no source is configured.
func (c *Client) token(ctx context.Context) (string, error) {
	if c.options.Token != nil {
		token, err := c.options.Token(ctx)
		if err == nil && !isToken(token) {
			err = errors.New("the source of the token returned no valid token") // the token itself must not be shown
		}
		return token, err
	}
	if c.options.TokenFile == "" {
		return "", nil
	}
	data, info, err := readFile(c.options.TokenFile, maxFileBytes)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	if !isClusterService(c.base) && isTokenIn(c.serviceAccountDirs, info) {
		return "", errServiceAccountToken
	}
	token := strings.TrimSpace(string(data))
	if !isToken(token) {
		return "", errors.New("the token file does not hold a valid token") // the token itself must not be shown
	}
	return token, nil
}

// isToken reports whether a string can be sent as a bearer token.
func isToken(token string) bool {
	return token != "" && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

var errServiceAccountToken = errors.New("must be a service of the cluster, for example https://name.namespace.svc:8443: " +
	"the token of the pod's ServiceAccount is not sent elsewhere; another server takes another token file")

// isClusterService reports whether the host of a URL is a Service in the cluster.
func isClusterService(u *url.URL) bool {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	host = strings.TrimSuffix(host, ".cluster.local")
	service, isService := strings.CutSuffix(host, ".svc")
	return isService && strings.Count(service, ".") == 1 && !strings.HasPrefix(service, ".") && !strings.HasSuffix(service, ".")
}

// isServiceAccountPath reports whether a path is below a ServiceAccount directory.
func isServiceAccountPath(path string) bool {
	for _, dir := range serviceAccountDirs {
		if below, err := filepath.Rel(dir, filepath.Clean(path)); err == nil && filepath.IsLocal(below) {
			return true
		}
	}
	return false
}

// isTokenIn reports whether a file is the same file as the token in one of the directories.
func isTokenIn(dirs []string, info fs.FileInfo) bool {
	for _, dir := range dirs {
		if token, err := os.Stat(filepath.Join(dir, "token")); err == nil && os.SameFile(info, token) {
			return true
		}
	}
	return false
}
