// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
)

// localPods runs the containers of pods as local processes. They get the environment and the
// arguments that a kubelet would compute, plus PATH, HOME, and HOSTNAME. Init containers, volumes,
// and service account tokens are not supported. A container without a command runs the program
// named like its image: curl for quay.io/curl/curl:8. All processes are killed with the dev
// cluster.
type localPods struct {
	dir    string
	reader client.Reader
	wake   chan event.GenericEvent // pods whose processes have exited

	mu    sync.Mutex
	pods  map[types.UID][]*localContainer
	ended bool // no more processes are started
}

// localContainer is a container that runs as a process.
type localContainer struct {
	process *childprocess.Process
	log     string
}

func newLocalPods(dir string, reader client.Reader) *localPods {
	return &localPods{dir: dir, reader: reader, wake: make(chan event.GenericEvent, 1024), pods: map[types.UID][]*localContainer{}}
}

// start starts the processes of a pod unless it has already done so.
func (l *localPods) start(ctx context.Context, pod *corev1.Pod) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, started := l.pods[pod.UID]; started || l.ended {
		return nil
	}
	if len(pod.Spec.InitContainers) > 0 {
		return errors.New("annotation " + RunMode + ": local processes have no init containers")
	}
	l.pods[pod.UID] = nil
	for i := range pod.Spec.Containers {
		started, err := l.startContainer(ctx, pod, &pod.Spec.Containers[i])
		if err != nil {
			for _, other := range l.pods[pod.UID] {
				err = errors.Join(err, other.process.Kill())
			}
			return fmt.Errorf("container %s: %w", pod.Spec.Containers[i].Name, err)
		}
		l.pods[pod.UID] = append(l.pods[pod.UID], started)
	}
	return nil
}

func (l *localPods) startContainer(ctx context.Context, pod *corev1.Pod, container *corev1.Container) (*localContainer, error) {
	home := filepath.Join(l.dir, string(pod.UID))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("preparing the working folder: %w", err)
	}
	env, err := l.environment(ctx, pod, container)
	if err != nil {
		return nil, err
	}
	values := env.values()
	command := container.Command
	if len(command) == 0 {
		command = []string{programOf(container.Image)}
	}
	var arguments []string
	for _, argument := range append(append([]string{}, command...), container.Args...) {
		arguments = append(arguments, expand(argument, values))
	}
	base := environment{
		{Name: "PATH", Value: os.Getenv("PATH")}, {Name: "HOME", Value: home}, {Name: "HOSTNAME", Value: pod.Name},
	}
	variables := append(base, env...).strings()
	if err := checkSizes(append(append([]string{}, variables...), arguments...)); err != nil {
		return nil, err
	}
	log := filepath.Join(l.dir, fmt.Sprintf("%s_%s_%s.log", pod.Namespace, pod.Name, container.Name))
	ended := &corev1.Pod{}
	ended.Namespace, ended.Name = pod.Namespace, pod.Name
	process, err := childprocess.Start(childprocess.Command{
		Path: arguments[0], Args: arguments[1:], Env: variables, Log: log, Dir: home,
		OnExit: func(error) { l.wake <- event.GenericEvent{Object: ended} },
	})
	return &localContainer{process: process, log: log}, err
}

// programOf returns the name of an image without registry, tag, and digest.
func programOf(image string) string {
	name, _, _ := strings.Cut(path.Base(image), "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// environment returns the environment variables of a container.
func (l *localPods) environment(ctx context.Context, pod *corev1.Pod, container *corev1.Container) (environment, error) {
	var vars []corev1.EnvVar
	for _, source := range container.EnvFrom {
		data, err := l.dataOf(ctx, pod.Namespace, source)
		if err != nil {
			return nil, err
		}
		for key, value := range data {
			vars = append(vars, corev1.EnvVar{Name: source.Prefix + key, Value: strings.ReplaceAll(value, "$", "$$")})
		}
	}
	var errs []error
	env := expandEnvironment(append(vars, container.Env...), func(source *corev1.EnvVarSource) string {
		value, err := l.valueOf(ctx, pod, source)
		errs = append(errs, err)
		return value
	})
	return env, errors.Join(errs...)
}

func (l *localPods) dataOf(ctx context.Context, namespace string, source corev1.EnvFromSource) (map[string]string, error) {
	switch {
	case source.ConfigMapRef != nil:
		return l.configMap(ctx, namespace, source.ConfigMapRef.Name)
	case source.SecretRef != nil:
		return l.secret(ctx, namespace, source.SecretRef.Name)
	default:
		return nil, errors.New("envFrom has neither a ConfigMap nor a Secret")
	}
}

func (l *localPods) configMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	var config corev1.ConfigMap
	if err := l.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &config); err != nil {
		return nil, fmt.Errorf("reading the environment: %w", err)
	}
	return config.Data, nil
}

func (l *localPods) secret(ctx context.Context, namespace, name string) (map[string]string, error) {
	var secret corev1.Secret
	if err := l.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret); err != nil {
		return nil, fmt.Errorf("reading the environment: %w", err)
	}
	data := map[string]string{}
	for key, value := range secret.Data {
		data[key] = string(value)
	}
	return data, nil
}

// valueOf returns the value of a variable with a source.
func (l *localPods) valueOf(ctx context.Context, pod *corev1.Pod, source *corev1.EnvVarSource) (string, error) {
	switch {
	case source.ConfigMapKeyRef != nil:
		data, err := l.configMap(ctx, pod.Namespace, source.ConfigMapKeyRef.Name)
		return data[source.ConfigMapKeyRef.Key], err
	case source.SecretKeyRef != nil:
		data, err := l.secret(ctx, pod.Namespace, source.SecretKeyRef.Name)
		return data[source.SecretKeyRef.Key], err
	case source.FieldRef != nil:
		return fieldOf(pod, source.FieldRef.FieldPath)
	default:
		return "", errors.New("the source of a variable is neither a field, nor a ConfigMap, nor a Secret")
	}
}

// fieldOf returns a field of a pod for the downward API.
func fieldOf(pod *corev1.Pod, fieldPath string) (string, error) {
	for prefix, values := range map[string]map[string]string{"metadata.labels['": pod.Labels, "metadata.annotations['": pod.Annotations} {
		if key, ok := strings.CutPrefix(fieldPath, prefix); ok {
			return values[strings.TrimSuffix(key, "']")], nil
		}
	}
	value, known := map[string]string{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "metadata.uid": string(pod.UID),
		"spec.nodeName": pod.Spec.NodeName, "spec.serviceAccountName": pod.Spec.ServiceAccountName,
		"status.podIP": "127.0.0.1", "status.hostIP": "127.0.0.1",
	}[fieldPath]
	if !known {
		return "", fmt.Errorf("field %s is not available to local processes", fieldPath)
	}
	return value, nil
}

// maxMessage is the maximum output that a kubelet copies to the status, in bytes.
const maxMessage = 2048

// results returns how the containers of a pod ended, and whether all of them have ended. Containers
// of an earlier dev cluster were killed with it.
func (l *localPods) results(pod *corev1.Pod) ([]corev1.ContainerStateTerminated, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	containers := l.pods[pod.UID]
	results := make([]corev1.ContainerStateTerminated, len(pod.Spec.Containers))
	for i := range results {
		if i >= len(containers) {
			results[i] = corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error", Message: "the process was killed with its dev cluster"}
			continue
		}
		if containers[i].process.Running() {
			return nil, false
		}
		results[i] = corev1.ContainerStateTerminated{
			ExitCode: int32(containers[i].process.ExitCode()), Reason: "Completed", Message: lastOutput(containers[i].log),
		}
		if results[i].ExitCode != 0 {
			results[i].Reason = "Error"
		}
	}
	return results, true
}

// lastOutput returns the end of a log file, or an empty string if it cannot be read.
func lastOutput(name string) string {
	file, err := os.Open(name) //nolint:gosec // our own log file
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() > maxMessage {
		if _, err := file.Seek(-maxMessage, io.SeekEnd); err != nil {
			return ""
		}
	}
	content, err := io.ReadAll(io.LimitReader(file, maxMessage))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(content), "")
}

// stop terminates the processes of a pod and kills those that have not exited within the grace
// period.
func (l *localPods) stop(uid types.UID, grace time.Duration) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	containers := l.pods[uid]
	delete(l.pods, uid)
	l.mu.Unlock()
	var errs []error
	for _, container := range containers {
		errs = append(errs, container.process.Stop(grace))
	}
	return errors.Join(errs...)
}

// run kills all processes when the context ends.
func (l *localPods) run(ctx context.Context) error {
	<-ctx.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	var errs []error
	for _, containers := range l.pods {
		for _, container := range containers {
			errs = append(errs, container.process.Kill())
		}
	}
	return errors.Join(errs...)
}
