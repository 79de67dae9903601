// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// ownPrefix is the prefix of this operator's labels and annotations. Templates cannot set them.
const ownPrefix = "managedupgrade.appuio.io/"

// maxName is the maximum length of an object's name.
const maxName = 253

// nameAttempts is the number of names to try, because other clients may have UpgradeJobs with the
// first ones.
const nameAttempts = 3

// request describes an UpgradeJob that must exist.
type request struct {
	slot    string // the value of the slot's label
	start   time.Time
	release clusterstate.Release // the zero Release runs hooks only
	name    string               // the name ends with a hash of this text
}

// verify returns errBehind if the cached UpgradeConfig is stale. It is called before anything is
// published or created.
func (s *scope) verify(ctx context.Context) error {
	var live maintenancev1beta1.UpgradeConfig
	err := s.live.Get(ctx, client.ObjectKeyFromObject(s.cfg), &live)
	switch {
	case apierrors.IsNotFound(err):
		return errBehind
	case err != nil:
		return fmt.Errorf("getting UpgradeConfig %s from the API server: %w", s.cfg.Name, err)
	case live.UID != s.cfg.UID || live.ResourceVersion != s.cfg.ResourceVersion:
		return errBehind
	}
	return nil
}

// findJob returns the UpgradeJob of a slot from the API server, or nil if there is none. It returns
// errBehind if the cached UpgradeConfig is stale.
func (s *scope) findJob(ctx context.Context, slot string) (*maintenancev1beta1.UpgradeJob, error) {
	if err := s.verify(ctx); err != nil {
		return nil, err
	}
	var jobs maintenancev1beta1.UpgradeJobList
	labels := client.MatchingLabels{maintenancev1beta1.ConfigLabel: string(s.cfg.UID), maintenancev1beta1.SlotLabel: slot}
	if err := s.live.List(ctx, &jobs, client.InNamespace(s.cfg.Namespace), labels); err != nil {
		return nil, fmt.Errorf("listing the UpgradeJobs of slot %s: %w", slot, err)
	}
	for i := range jobs.Items {
		if maintenance.OwnerUID(&jobs.Items[i]) == string(s.cfg.UID) {
			return &jobs.Items[i], nil
		}
	}
	return nil, nil
}

// cachedJob returns the UpgradeJob of a slot from the cache, or nil if there is none.
func (s *scope) cachedJob(slot string) *maintenancev1beta1.UpgradeJob {
	for i := range s.jobs {
		if s.jobs[i].Labels[maintenancev1beta1.SlotLabel] == slot {
			return &s.jobs[i]
		}
	}
	return nil
}

// createJob creates the UpgradeJob of a slot. If another operator has just created it, createJob
// returns that one.
func (s *scope) createJob(ctx context.Context, req request) (*maintenancev1beta1.UpgradeJob, error) {
	for i := range nameAttempts {
		job := s.newJob(req)
		start, hashed := req.start, req.name
		if maintenance.IsRunNow(req.slot) {
			start = time.Time{} // another process may handle the request at another time
		}
		if i > 0 {
			hashed = fmt.Sprintf("%s/%d", hashed, i)
		}
		job.Name = jobName(s.cfg.Name, start, hashed)
		err := s.client.Create(ctx, job)
		switch {
		case err == nil:
			return job, nil
		case !apierrors.IsAlreadyExists(err):
			return nil, fmt.Errorf("creating UpgradeJob %s: %w", job.Name, err)
		}
		if found, err := s.findJob(ctx, req.slot); found != nil || err != nil {
			return found, err
		}
	}
	return nil, fmt.Errorf("creating the UpgradeJob of slot %s: other clients have created UpgradeJobs with its names", req.slot)
}

// newJob returns the UpgradeJob of a slot, without a name.
func (s *scope) newJob(req request) *maintenancev1beta1.UpgradeJob {
	job := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.cfg.Namespace,
		Labels:    s.jobLabels(req.slot),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: maintenancev1beta1.GroupVersion.String(), Kind: kindName.Kind, Name: s.cfg.Name, UID: s.cfg.UID, Controller: new(true),
		}},
	}}
	if template := s.cfg.Spec.JobTemplate.Metadata; template != nil {
		job.Annotations = ofTemplate(template.Annotations)
	}
	job.Spec = maintenancev1beta1.UpgradeJobSpec{
		StartAfter:     maintenance.Timestamp(req.start),
		StartBefore:    maintenance.Timestamp(req.start.Add(s.delay)),
		DesiredVersion: maintenancev1beta1.DesiredVersion{Version: req.release.Version},
		Config:         *s.cfg.Spec.JobTemplate.Spec.Config.DeepCopy(),
	}
	if digestPattern.MatchString(req.release.Image) {
		job.Spec.DesiredVersion.Image = req.release.Image
	}
	return job
}

// jobLabels returns the labels of the UpgradeJob of a slot. Windows match these labels even before
// the UpgradeJob exists.
func (s *scope) jobLabels(slot string) map[string]string {
	labels := map[string]string{}
	if template := s.cfg.Spec.JobTemplate.Metadata; template != nil {
		maps.Copy(labels, ofTemplate(template.Labels))
	}
	labels[maintenancev1beta1.ConfigLabel], labels[maintenancev1beta1.SlotLabel] = string(s.cfg.UID), slot
	return labels
}

// ofTemplate returns the labels or annotations of a template, without those that templates cannot
// set.
func ofTemplate(values map[string]string) map[string]string {
	values = maps.Clone(values)
	maps.DeleteFunc(values, func(key, _ string) bool { return strings.HasPrefix(key, ownPrefix) })
	return values
}

// digestPattern matches the images that spec.desiredVersion.image accepts. An available release
// with any other image is identified by its version.
var digestPattern = regexp.MustCompile(`^[^@ ]+@sha256:[0-9a-f]+$`)

// jobName returns the name of an UpgradeJob. The names for one UpgradeConfig sort by start. The
// start is zero if it must not be part of the name.
func jobName(config string, start time.Time, hashed string) string {
	at := "now"
	if !start.IsZero() {
		at = strconv.FormatInt(start.Unix(), 10)
	}
	end := "-" + at + "-" + text.Hash(hashed, 4)[:7]
	return strings.TrimRight(config[:min(len(config), maxName-len(end))], "-.") + end
}

// labelValue returns a version as a label value, or its hash if the version is not a valid label
// value.
func labelValue(version string) string {
	const maxVersion = validation.LabelValueMaxLength - len(maintenancev1beta1.SlotVersionPrefix)
	if len(version) <= maxVersion && len(validation.IsValidLabelValue(version)) == 0 {
		return version
	}
	return text.Hash(version, 8)
}

// describeJob describes a created UpgradeJob.
func describeJob(job *maintenancev1beta1.UpgradeJob) string {
	does := "runs its hooks without an upgrade, since no update is available,"
	if version := job.Spec.DesiredVersion.Version; version != "" {
		does = "upgrades the cluster to " + version + ","
	}
	return fmt.Sprintf("UpgradeJob %s %s between %s and %s", job.Name, does, job.Spec.StartAfter, job.Spec.StartBefore)
}
