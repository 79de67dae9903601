// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	values := map[string]string{"NAME": "value", "EMPTY": "", "DOLLAR": "$(NAME)"}
	for text, want := range map[string]string{
		"": "", "plain": "plain", "$(NAME)": "value", "a$(NAME)b$(EMPTY)c": "avaluebc",
		"$$(NAME)": "$(NAME)", "$$$(NAME)": "$value", "$$$$(NAME)": "$$(NAME)", "$(UNKNOWN)": "$(UNKNOWN)", "$NAME": "$NAME",
		"$(NAME": "$(NAME", "$": "$", "100$": "100$", "$(DOLLAR)": "$(NAME)", "$()": "$()", "${NAME}": "${NAME}",
	} {
		if got := expand(text, values); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestExpandEnvironment_refers_to_earlier_variables(t *testing.T) {
	t.Parallel()
	env := expandEnvironment([]corev1.EnvVar{
		{Name: "A", Value: "$(B)"}, {Name: "B", Value: "b"}, {Name: "C", Value: "$(A) $(B)"}, {Name: "A", Value: "again"}, {Name: "D", Value: "$(A)"},
	}, nil)
	if diff := cmp.Diff([]string{"A=again", "B=b", "C=$(B) b", "D=again"}, env.strings()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// localWorld runs one pod as local processes.
type localWorld struct {
	t        *testing.T
	client   client.Client
	kubelets *Kubelets
	pod      *corev1.Pod
	dir      string
	end      context.CancelFunc // stops the dev cluster
}

func newLocalWorld(t *testing.T, containers ...corev1.Container) *localWorld {
	t.Helper()
	w := &localWorld{t: t, dir: t.TempDir()}
	w.client = simulation.NewFakeClient(t,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{"COLOR": "$(RED)"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "token"}, Data: map[string][]byte{"key": []byte("secret")}},
	)
	w.kubelets = New(Options{Clock: clock.RealClock{}, LocalDir: w.dir, Reader: w.client})
	w.kubelets.client = w.client
	ctx, end := context.WithCancel(t.Context())
	w.end = end
	ended := make(chan error, 1)
	go func() { ended <- w.kubelets.local.run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	w.pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "hook", UID: "7", Labels: map[string]string{"app": "shop"}, Annotations: map[string]string{RunMode: "local"},
			CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Minute)),
		},
		Spec:   corev1.PodSpec{NodeName: "a", RestartPolicy: corev1.RestartPolicyNever, Containers: containers},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if err := w.client.Create(t.Context(), w.pod); err != nil {
		t.Fatal(err)
	}
	return w
}

// reconcile reconciles the pod and returns it.
func (w *localWorld) reconcile() *corev1.Pod {
	w.t.Helper()
	if _, err := w.kubelets.reconcilePod(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w.pod)}); err != nil {
		w.t.Fatal(err)
	}
	var pod corev1.Pod
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(w.pod), &pod); err != nil {
		w.t.Fatal(err)
	}
	return &pod
}

// runToEnd reconciles the pod until it has completed.
func (w *localWorld) runToEnd() *corev1.Pod {
	w.t.Helper()
	for range len(w.pod.Spec.Containers) {
		if pod := w.reconcile(); pod.Status.Phase == corev1.PodFailed {
			return pod
		}
		select {
		case <-w.kubelets.local.wake:
		case <-time.After(10 * time.Second):
			w.t.Fatal("no process ends")
		}
	}
	return w.reconcile()
}

func shell(name, script string, env ...corev1.EnvVar) corev1.Container {
	return corev1.Container{Name: name, Image: "example.com/tools:1", Command: []string{"sh", "-c"}, Args: []string{script}, Env: env}
}

func TestLocalPod(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 100<<10)
	tests := map[string]struct {
		containers []corev1.Container
		phase      corev1.PodPhase
		want       []corev1.ContainerStateTerminated
	}{
		"output and environment": {
			containers: []corev1.Container{shell("a", `printf '%s\n' "$EVENT" "$COPY" "$HOSTNAME" $(EVENT_count)$$((1+1)) "$HOME"; env | wc -l`,
				corev1.EnvVar{Name: "EVENT", Value: `{"name": "Start", "price": "$$(EVENT_count)"}`},
				corev1.EnvVar{Name: "EVENT_count", Value: "3"}, corev1.EnvVar{Name: "COPY", Value: "$(EVENT_count)!"})},
			phase: corev1.PodSucceeded,
			want: []corev1.ContainerStateTerminated{{
				Reason: "Completed", Message: "{\"name\": \"Start\", \"price\": \"$(EVENT_count)\"}\n3!\nhook\n32\nDIR/00000003-0000-4000-8000-000000000000\n7\n",
			}},
		},
		"sources of variables": {
			containers: []corev1.Container{func() corev1.Container {
				c := shell("a", `echo "$COLOR $KEY $APP"`,
					corev1.EnvVar{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "token"}, Key: "key"}}},
					corev1.EnvVar{Name: "APP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['app']"}}})
				c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
				return c
			}()},
			phase: corev1.PodSucceeded, want: []corev1.ContainerStateTerminated{{Reason: "Completed", Message: "$(RED) secret shop\n"}},
		},
		"program of the image": {
			containers: []corev1.Container{{Name: "a", Image: "localhost:5000/tools/echo:8.1.2", Args: []string{"hello"}}},
			phase:      corev1.PodSucceeded, want: []corev1.ContainerStateTerminated{{Reason: "Completed", Message: "hello\n"}},
		},
		"one of two containers fails": {
			containers: []corev1.Container{shell("a", "exit 0"), shell("b", "echo broken >&2; exit 3")},
			phase:      corev1.PodFailed,
			want:       []corev1.ContainerStateTerminated{{Reason: "Completed"}, {ExitCode: 3, Reason: "Error", Message: "broken\n"}},
		},
		"program that does not exist": {
			containers: []corev1.Container{{Name: "a", Image: "example.com/no-such-program"}},
			phase:      corev1.PodFailed,
			want: []corev1.ContainerStateTerminated{{
				ExitCode: 128, Reason: "StartError", Message: `container a: starting no-such-program: exec: "no-such-program": executable file not found in $PATH`,
			}},
		},
		"variable of 100 KiB": {
			containers: []corev1.Container{shell("a", `echo ${#JOB}`, corev1.EnvVar{Name: "JOB", Value: large})},
			phase:      corev1.PodSucceeded, want: []corev1.ContainerStateTerminated{{Reason: "Completed", Message: "102400\n"}},
		},
		"variable larger than Linux allows": {
			containers: []corev1.Container{shell("a", `echo ${#JOB}`, corev1.EnvVar{Name: "JOB", Value: large + large})},
			phase:      corev1.PodFailed,
			want: []corev1.ContainerStateTerminated{{
				ExitCode: 128, Reason: "StartError", Message: `container a: starting the process: argument list too long: "JOB" has 204804 bytes`,
			}},
		},
		"environment larger than Linux allows": {
			containers: []corev1.Container{shell("a", `true`, func() (all []corev1.EnvVar) {
				for range 21 {
					all = append(all, corev1.EnvVar{Name: "V" + string(rune('A'+len(all))), Value: large})
				}
				return all
			}()...)},
			phase: corev1.PodFailed,
			want: []corev1.ContainerStateTerminated{{
				ExitCode: 128, Reason: "StartError", Message: "container a: starting the process: argument list too long: N bytes in all",
			}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLocalWorld(t, test.containers...)
			pod := w.runToEnd()
			var got []corev1.ContainerStateTerminated
			for _, status := range pod.Status.ContainerStatuses {
				terminated := *status.State.Terminated
				terminated.StartedAt, terminated.FinishedAt = metav1.Time{}, metav1.Time{}
				terminated.Message = strings.ReplaceAll(terminated.Message, w.dir, "DIR")
				if before, _, total := strings.Cut(terminated.Message, "too long: 2"); total {
					terminated.Message = before + "too long: N bytes in all"
				}
				got = append(got, terminated)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || pod.Status.Phase != test.phase {
				t.Errorf("phase %s, containers (-want +got):\n%s", pod.Status.Phase, diff)
			}
		})
	}
}

func TestLocalPod_is_killed_with_its_cluster(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t, shell("a", "sleep 1000 & sleep 1000"))
	w.reconcile()
	process := w.kubelets.local.pods[w.pod.UID][0].process
	w.end()
	select {
	case <-process.Exited():
	case <-time.After(10 * time.Second):
		t.Fatal("the process is running")
	}
	if got := process.ExitCode(); got != 137 {
		t.Errorf("exit code %d", got)
	}
}

func TestLocalPod_is_terminated_when_it_is_deleted(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t, shell("a", "trap 'echo bye; exit 0' TERM; echo hello; sleep 1000 & wait"))
	w.reconcile()
	log := filepath.Join(w.dir, "default_hook_a.log")
	for content := ""; content != "hello\n"; {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if content = string(text); t.Context().Err() != nil {
			t.Fatal("no output")
		}
	}
	if err := w.kubelets.local.stop(w.pod.UID, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(log); err != nil || string(text) != "hello\nbye\n" {
		t.Errorf("the log is %q, error %v", text, err)
	}
	// The next dev cluster finds the pod running although its process is gone.
	if pod := w.reconcile(); pod.Status.Phase == corev1.PodRunning {
		pod = w.reconcile()
		if got := pod.Status.ContainerStatuses[0].State.Terminated; got == nil || got.ExitCode != 137 {
			t.Errorf("the container is %+v", pod.Status.ContainerStatuses[0].State)
		}
	}
}
