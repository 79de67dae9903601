// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

var noon = time.Date(2027, 3, 2, 12, 0, 0, 0, time.UTC)

func upgradeJob(change func(*maintenancev1beta1.UpgradeJob)) *maintenancev1beta1.UpgradeJob {
	job := &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "upgrades", Name: "cluster-upgrade", UID: types.UID("u1"),
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Spec: maintenancev1beta1.UpgradeJobSpec{DesiredVersion: maintenancev1beta1.DesiredVersion{Version: "4.20.6", Image: "quay.io/r@sha256:1"}},
	}
	if change != nil {
		change(job)
	}
	return job
}

// lookup returns the values by name. It fails the test if a name occurs twice.
func lookup(t *testing.T, variables []variable) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, v := range variables {
		if _, twice := values[v.name]; twice {
			t.Errorf("%s is there twice", v.name)
		}
		values[v.name] = v.value
	}
	return values
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		event  Event
		change func(*maintenancev1beta1.UpgradeJob)
		want   map[string]string
		absent []string
	}{
		"event": {
			event: Event{Name: maintenancev1beta1.EventStart, Reason: "Started", Message: `it "starts"`},
			want: map[string]string{
				"EVENT":      `{"message":"it \"starts\"","name":"Start","pool":"","reason":"Started","time":"2027-03-02T12:00:00Z"}`,
				"EVENT_name": `"Start"`, "EVENT_NAME": `"Start"`, "EVENT_time": `"2027-03-02T12:00:00Z"`,
				"EVENT_reason": `"Started"`, "EVENT_message": `"it \"starts\""`, "EVENT_pool": `""`,
			},
			absent: []string{"JOB_TRUNCATED"},
		},
		"pool": {
			event: Event{Name: maintenancev1beta1.EventMachineConfigPoolUnpause, Pool: "night"},
			want:  map[string]string{"EVENT_pool": `"night"`, "EVENT_NAME": `"MachineConfigPoolUnpause"`},
		},
		"nested fields": {
			want: map[string]string{
				"JOB_apiVersion": `"managedupgrade.appuio.io/v1beta1"`, "JOB_kind": `"UpgradeJob"`,
				"JOB_metadata_name": `"cluster-upgrade"`, "JOB_spec_desiredVersion_image": `"quay.io/r@sha256:1"`,
			},
			absent: []string{"JOB_metadata", "JOB_spec", "JOB_metadata_managedFields_0_manager"},
		},
		"absent optional fields": {
			change: func(job *maintenancev1beta1.UpgradeJob) {
				job.Spec.DesiredVersion = maintenancev1beta1.DesiredVersion{}
				job.Spec.Config.MachineConfigPools = []maintenancev1beta1.MachineConfigPoolConfig{{DelayUpgrade: maintenancev1beta1.DelayUpgrade{DelayMin: "1h"}}}
			},
			want: map[string]string{
				"JOB_spec_desiredVersion_image": "null", "JOB_spec_desiredVersion_version": "null", "JOB_spec_config_upgradeTimeout": "null",
				"JOB_spec_desiredVersionCheckAvailability":                   "null",
				"JOB_spec_config_machineConfigPools_0_delayUpgrade_delayMax": "null",
				"JOB_spec_config_machineConfigPools_0_delayUpgrade_delayMin": `"1h"`,
			},
			absent: []string{"JOB_spec_desiredVersion", "JOB_spec_config"},
		},
		"odd keys": {
			change: func(job *maintenancev1beta1.UpgradeJob) {
				job.Labels = map[string]string{"my-var.io/info": "a", "größe": "b", "": "c", "7": "d"}
			},
			want: map[string]string{
				"JOB_metadata_labels_my_var_io_info": `"a"`, "JOB_metadata_labels_gr__e": `"b"`,
				"JOB_metadata_labels_": `"c"`, "JOB_metadata_labels_7": `"d"`,
			},
		},
		"colliding keys": {
			change: func(job *maintenancev1beta1.UpgradeJob) {
				job.Labels = map[string]string{"a_b": "third", "a.b": "second", "a-b": "first"}
			},
			want: map[string]string{"JOB_metadata_labels_a_b": `"first"`},
		},
		"arrays": {
			change: func(job *maintenancev1beta1.UpgradeJob) {
				job.Spec.Config.MachineConfigPools = []maintenancev1beta1.MachineConfigPoolConfig{
					{DelayUpgrade: maintenancev1beta1.DelayUpgrade{DelayMin: "1h"}}, {DelayUpgrade: maintenancev1beta1.DelayUpgrade{DelayMin: "2h"}},
				}
				job.Finalizers = []string{"x"}
			},
			want: map[string]string{
				"JOB_spec_config_machineConfigPools_0_delayUpgrade_delayMin": `"1h"`,
				"JOB_spec_config_machineConfigPools_1_delayUpgrade_delayMin": `"2h"`,
				"JOB_metadata_finalizers_0":                                  `"x"`,
			},
			absent: []string{"JOB_spec_config_machineConfigPools"},
		},
		"other types": {
			change: func(job *maintenancev1beta1.UpgradeJob) {
				job.Spec.DesiredVersionCheckAvailability = new(false)
				job.Status.History = []history.Record{{Attempt: 1}}
			},
			want: map[string]string{"JOB_spec_desiredVersionCheckAvailability": "false", "JOB_status_history_0_attempt": "1"},
		},
		"references are not expanded": {
			change: func(job *maintenancev1beta1.UpgradeJob) {
				job.Annotations = map[string]string{"a": "$(EVENT) $$(X) $"}
			},
			want: map[string]string{"JOB_metadata_annotations_a": `"$$(EVENT) $$$$(X) $$"`},
		},
		"quotes, newlines, Unicode, HTML": {
			change: func(job *maintenancev1beta1.UpgradeJob) {
				job.Annotations = map[string]string{"a": "\"'\n\t\u00e9\u2603\U0001f600<&>\x00"}
			},
			want: map[string]string{"JOB_metadata_annotations_a": `"\"'\n\té☃😀<&>\u0000"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			variables, err := newEnvironment(tc.event, noon, maintenance.JobOwners(), upgradeJob(tc.change), 1)
			if err != nil {
				t.Fatal(err)
			}
			got := lookup(t, variables)
			for key, want := range tc.want {
				if got[key] != want {
					t.Errorf("%s is %s, want %s", key, got[key], want)
				}
			}
			for _, key := range tc.absent {
				if value, ok := got[key]; ok {
					t.Errorf("%s is %s", key, value)
				}
			}
			if strings.Contains(got["JOB"], "managedFields") {
				t.Errorf("JOB has managed fields: %s", got["JOB"])
			}
		})
	}
}

func TestEnvironment_is_truncated_to_the_limits(t *testing.T) {
	t.Parallel()
	annotated := func(size int) func(*maintenancev1beta1.UpgradeJob) {
		return func(job *maintenancev1beta1.UpgradeJob) {
			job.Annotations = map[string]string{"large": strings.Repeat("a", size)}
			job.Status.History = []history.Record{{Attempt: 1}}
		}
	}
	labeled := func(size int) func(*maintenancev1beta1.UpgradeJob) {
		return func(job *maintenancev1beta1.UpgradeJob) {
			job.Labels = map[string]string{"large": strings.Repeat("a", size)}
		}
	}
	for name, tc := range map[string]struct {
		change     func(*maintenancev1beta1.UpgradeJob)
		containers int
		truncated  bool
		tooLarge   bool
	}{
		"small":                           {change: annotated(1 << 10), containers: 1},
		"fits into one container":         {change: annotated(90 << 10), containers: 1},
		"annotations of 100 KiB":          {change: annotated(100 << 10), containers: 1, truncated: true},
		"too much for five containers":    {change: annotated(60 << 10), containers: 5, truncated: true},
		"labels of 100 KiB":               {change: labeled(100 << 10), containers: 1, tooLarge: true},
		"labels too large for containers": {change: labeled(60 << 10), containers: 5, tooLarge: true},
		"doubled signs count for the Job": {change: func(job *maintenancev1beta1.UpgradeJob) {
			job.Labels = map[string]string{"l": strings.Repeat("$", 80<<10)}
		}, containers: 2, tooLarge: true},
		"doubled signs count once at most": {change: func(job *maintenancev1beta1.UpgradeJob) {
			job.Labels = map[string]string{"l": strings.Repeat("$", 80<<10)}
		}, containers: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			variables, err := newEnvironment(Event{Name: maintenancev1beta1.EventStart}, noon, maintenance.JobOwners(), upgradeJob(tc.change), tc.containers)
			if errors.Is(err, errEnvironmentTooLarge) != tc.tooLarge || err != nil && !tc.tooLarge {
				t.Fatalf("got %v", err)
			}
			if tc.tooLarge {
				return
			}
			got := lookup(t, variables)
			if truncated := got["JOB_TRUNCATED"] == "true"; truncated != tc.truncated {
				t.Errorf("truncated: %t", truncated)
			}
			if hasStatus := got["JOB_status_history_0_attempt"] == "1"; hasStatus == tc.truncated && strings.Contains(name, "annot") {
				t.Errorf("has a status: %t", hasStatus)
			}
		})
	}
}

func TestEnvironment_does_not_change_the_UpgradeJob(t *testing.T) {
	t.Parallel()
	job := upgradeJob(func(job *maintenancev1beta1.UpgradeJob) {
		job.Annotations = map[string]string{"large": strings.Repeat("a", 200<<10)}
	})
	before := job.DeepCopy()
	if _, err := newEnvironment(Event{Name: maintenancev1beta1.EventStart}, noon, maintenance.JobOwners(), job, 1); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, job); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

var nameOfVariable = regexp.MustCompile(`^(EVENT|JOB)(_[A-Za-z0-9_]*)?$`)

func FuzzEnvironment(f *testing.F) {
	f.Add("a.b", "a-b", "$(X)", "\"\n\u00e9", 1)
	f.Add("", "\x00\xff", "$$", "<script>", 3)
	f.Add("x", "y", strings.Repeat("a", 60<<10), "", 7)
	f.Add("l/_", "l-_", "null", strings.Repeat("$", 100<<10), 2)
	f.Fuzz(func(t *testing.T, key, otherKey, value, message string, containers int) {
		containers = min(max(containers, 1), 8)
		job := upgradeJob(func(job *maintenancev1beta1.UpgradeJob) {
			job.Labels = map[string]string{key: value, otherKey: message}
			job.Annotations = map[string]string{otherKey: value}
			job.Spec.Config.MachineConfigPools = []maintenancev1beta1.MachineConfigPoolConfig{{DelayUpgrade: maintenancev1beta1.DelayUpgrade{DelayMin: maintenancev1beta1.Duration(value)}}}
		})
		variables, err := newEnvironment(Event{Name: maintenancev1beta1.EventStart, Message: message}, noon, maintenance.JobOwners(), job, containers)
		if errors.Is(err, errEnvironmentTooLarge) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, v := range variables {
			size += len(v.name) + len(v.value) + 2
			if !nameOfVariable.MatchString(v.name) {
				t.Errorf("name %q", v.name)
			}
			if !utf8.ValidString(v.value) || strings.ContainsRune(v.value, 0) {
				t.Errorf("%s cannot be a variable: %q", v.name, v.value)
			}
			expanded := strings.ReplaceAll(v.value, "$$", "")
			if strings.Contains(expanded, "$") {
				t.Errorf("%s is expanded: %s", v.name, v.value)
			}
			if !json.Valid([]byte(strings.ReplaceAll(v.value, "$$", "$"))) {
				t.Errorf("%s is no JSON: %q", v.name, v.value)
			}
			if v.name != "EVENT" && v.name != "EVENT_message" && len(v.name)+1+len(strings.ReplaceAll(v.value, "$$", "$")) > maxJobVariable {
				t.Errorf("%s has %d bytes", v.name, len(v.value))
			}
		}
		if size*containers > maxEnvironment {
			t.Errorf("%d bytes in %d containers", size, containers)
		}
		again, err := newEnvironment(Event{Name: maintenancev1beta1.EventStart, Message: message}, noon, maintenance.JobOwners(), job, containers)
		if err != nil || !slices.Equal(variables, again) {
			t.Errorf("the environment differs: %v", err)
		}
	})
}
