// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// Rhythm determines when upgrades start.
//
// +kubebuilder:validation:Enum=Cron;UpdateAvailable
type Rhythm string

const (
	// RhythmCron starts an upgrade at each scheduled time.
	RhythmCron Rhythm = "Cron"
	// RhythmUpdateAvailable starts one upgrade for each version that becomes available.
	RhythmUpdateAvailable Rhythm = "UpdateAvailable"
)

// UpdatePolicy determines which of the available updates is installed.
//
// +kubebuilder:validation:Enum=Newest;PatchOnly
type UpdatePolicy string

const (
	// UpdatePolicyNewest installs the highest available version.
	UpdatePolicyNewest UpdatePolicy = "Newest"
	// UpdatePolicyPatchOnly installs the highest available version of the current minor version.
	UpdatePolicyPatchOnly UpdatePolicy = "PatchOnly"
)

// NoUpdatePolicy determines what happens at a scheduled start if no update is available.
//
// +kubebuilder:validation:Enum=Skip;RunHooks
type NoUpdatePolicy string

const (
	// NoUpdateSkip creates no UpgradeJob.
	NoUpdateSkip NoUpdatePolicy = "Skip"
	// NoUpdateRunHooks creates an UpgradeJob without a version that only runs hooks.
	NoUpdateRunHooks NoUpdatePolicy = "RunHooks"
)

// LatePin determines whether an update is installed if it becomes available after the version should have
// been pinned.
//
// +kubebuilder:validation:Enum=Never;Allow
type LatePin string

const (
	// LatePinNever skips a start that has no update when its version should be pinned.
	LatePinNever LatePin = "Never"
	// LatePinAllow pins the first update that becomes available before the start.
	LatePinAllow LatePin = "Allow"
)

// UpgradeConfig schedules upgrades of this cluster. It creates an UpgradeJob for each upgrade.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=upgradeconfigs,shortName=uc,categories=maintenance
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cron",type=string,JSONPath=`.spec.schedule.cron`
// +kubebuilder:printcolumn:name="Week",type=string,JSONPath=`.spec.schedule.isoWeek`
// +kubebuilder:printcolumn:name="Location",type=string,JSONPath=`.spec.schedule.location`
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.schedule.suspend`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextPossibleSchedules[0].time`
// +kubebuilder:printcolumn:name="Last",type=string,JSONPath=`.status.lastSlot.result`
// +kubebuilder:printcolumn:name="Rhythm",type=string,priority=1,JSONPath=`.spec.schedule.rhythm`
// +kubebuilder:printcolumn:name="Accepted",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Accepted")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Scheduled")].message`
type UpgradeConfig struct {
	metav1.TypeMeta `json:",inline"`

	stored.Leftovers `json:"-"`

	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines when upgrades start and what they do.
	//
	// +required
	Spec UpgradeConfigSpec `json:"spec,omitzero"`

	// status reports what the operator has scheduled.
	//
	// +optional
	Status UpgradeConfigStatus `json:"status,omitzero"` //nolint:kubeapilinter // It may be emptied: the operator observes it again.
}

// UpgradeConfigSpec defines when upgrades start and what they do. Changes apply only to UpgradeJobs created
// later.
type UpgradeConfigSpec struct {
	// schedule defines when upgrades start.
	//
	// +required
	Schedule UpgradeConfigSchedule `json:"schedule,omitzero"`

	// pinVersionWindow is how long before the scheduled start the UpgradeJob is created and its version
	// pinned, for example 4h. It defaults to 0s: the UpgradeJob is created at its start. An empty string is
	// the same as 0s.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	PinVersionWindow *Duration `json:"pinVersionWindow,omitempty"`

	// maxUpgradeStartDelay is the maximum time from the scheduled start to the commencement of the upgrade.
	// An upgrade that has not commenced by then is skipped. It defaults to 1h.
	//
	// +optional
	// +default="1h"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="!self.matches('[0-9]') || self.matches('[1-9]')",message="must be longer than 0s, for example 1h"
	MaxUpgradeStartDelay Duration `json:"maxUpgradeStartDelay,omitempty"`

	// updatePolicy selects one of the available updates: Newest selects the highest version, PatchOnly the
	// highest version of the current minor version. Conditional updates are never selected. It defaults to
	// Newest.
	//
	// +optional
	// +default="Newest"
	UpdatePolicy UpdatePolicy `json:"updatePolicy,omitempty"`

	// whenNoUpdate determines what happens at a scheduled start if no update is available: Skip creates no
	// UpgradeJob, RunHooks creates one that only runs hooks. It defaults to Skip.
	//
	// +optional
	// +default="Skip"
	WhenNoUpdate NoUpdatePolicy `json:"whenNoUpdate,omitempty"`

	// latePin determines what happens if no update is available when the version should be pinned. Never
	// skips the start. Allow pins an update that becomes available before the start, and runs hooks for the
	// event Create at that time. It defaults to Never.
	//
	// +optional
	// +default="Never"
	LatePin LatePin `json:"latePin,omitempty"`

	// successfulJobsHistoryLimit is the number of UpgradeJobs in phase Upgraded or Skipped to keep. It
	// defaults to 3.
	//
	// +optional
	// +default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// failedJobsHistoryLimit is the number of UpgradeJobs in phase Failed to keep. It defaults to 5.
	//
	// +optional
	// +default=5
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`

	// jobTemplate is the template for the UpgradeJobs.
	//
	// +optional
	// +default={"spec": {"config": {"upgradeTimeout": "12h"}}}
	JobTemplate UpgradeJobTemplate `json:"jobTemplate,omitzero"`
}

// UpgradeConfigSchedule defines when upgrades start.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.cron) || has(self.rhythm) && self.rhythm == 'UpdateAvailable'",message="set cron, for example 0 22 * * 2 for 22:00 on Tuesdays, or rhythm: UpdateAvailable"
type UpgradeConfigSchedule struct {
	// cron defines the start times in the time zone given by location, for example 0 22 * * 2 for 22:00 on
	// Tuesdays. Its five fields are minute, hour, day (of the month), month, and day of the week (Sunday is 0
	// or 7). Names such as TUE and JAN, lists, ranges, and steps are allowed. If both the day of the month
	// and the day of the week are restricted, a day that matches either is selected. If clocks going
	// forward skip a start time, the upgrade starts at the end of the gap. If clocks going back repeat it,
	// the first occurrence counts.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^ *[^ ]+( +[^ ]+){4} *$')",message="must have five fields, separated by spaces: minute, hour, day, month, and weekday, for example 0 22 * * 2; a time zone belongs in location"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^ *[^ ]+( +[^ ]+){4} *$') || self.matches('^ *([*?](/[0-5]?[0-9])?|[0-5]?[0-9](-[0-5]?[0-9])?(/[0-5]?[0-9])?)(,([*?](/[0-5]?[0-9])?|[0-5]?[0-9](-[0-5]?[0-9])?(/[0-5]?[0-9])?))* ')",message="the minute (first field) must be *, or a list of minutes from 0 to 59 and ranges of them, with steps of at most 59, for example 0, 0,30, or */15"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^ *[^ ]+( +[^ ]+){4} *$') || self.matches('^ *[^ ]+ +([*?](/([01]?[0-9]|2[0-3]))?|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?(/([01]?[0-9]|2[0-3]))?)(,([*?](/([01]?[0-9]|2[0-3]))?|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?(/([01]?[0-9]|2[0-3]))?))* ')",message="the hour (second field) must be *, or a list of hours from 0 to 23 and ranges of them, with steps of at most 23, for example 22 or 20-23"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^ *[^ ]+( +[^ ]+){4} *$') || self.matches('^ *[^ ]+ +[^ ]+ +([*?](/([0-2]?[0-9]|30))?|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?(/([0-2]?[0-9]|30))?)(,([*?](/([0-2]?[0-9]|30))?|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?(/([0-2]?[0-9]|30))?))* ')",message="the day of the month (third field) must be *, or a list of days from 1 to 31 and ranges of them, with steps of at most 30, for example 1-7"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^ *[^ ]+( +[^ ]+){4} *$') || self.matches('(?i)^ *[^ ]+ +[^ ]+ +[^ ]+ +([*?](/(0?[0-9]|1[01]))?|(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(-(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))?(/(0?[0-9]|1[01]))?)(,([*?](/(0?[0-9]|1[01]))?|(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(-(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))?(/(0?[0-9]|1[01]))?))* ')",message="the month (fourth field) must be *, or a list of months from 1 to 12 or JAN to DEC and ranges of them, with steps of at most 11, for example 1-6"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^ *[^ ]+( +[^ ]+){4} *$') || self.matches('(?i)^ *[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ +([*?](/0?[0-7])?|(0?[0-7]|sun|mon|tue|wed|thu|fri|sat)(-(0?[0-7]|sun|mon|tue|wed|thu|fri|sat))?(/0?[0-7])?)(,([*?](/0?[0-7])?|(0?[0-7]|sun|mon|tue|wed|thu|fri|sat)(-(0?[0-7]|sun|mon|tue|wed|thu|fri|sat))?(/0?[0-7])?))* *$')",message="the day of the week (fifth field) must be *, or a list of days from 0 to 7 (Sunday is 0 or 7) or SUN to SAT and ranges of them, with steps of at most 7, for example 2 or MON-FRI"
	// +kubebuilder:validation:XValidation:rule="!self.matches('/0+([, ]|$)')",message="a step must be at least 1, for example */15"
	Cron string `json:"cron,omitempty"`

	// isoWeek selects weeks by their ISO 8601 number: @odd, @even, or a list of weeks from 1 to 53, ranges,
	// and steps, for example 7, 10-20, or */4. By default, every week is selected.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@odd|@even|([*]|(0?[1-9]|[1-4][0-9]|5[0-3])(-(0?[1-9]|[1-4][0-9]|5[0-3]))?)(/(0?[1-9]|[1-4][0-9]|5[0-3]))?(,([*]|(0?[1-9]|[1-4][0-9]|5[0-3])(-(0?[1-9]|[1-4][0-9]|5[0-3]))?)(/(0?[1-9]|[1-4][0-9]|5[0-3]))?)*)?$')",message="must be @odd, @even, or a list of weeks from 1 to 53, ranges, and steps, for example 7,10-20,*/4"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9*/,-]+$') || self.split(',').all(i, !i.matches('^[0-9]{1,2}-[0-9]{1,2}(/|$)') || int(i.split('/')[0].split('-')[0]) <= int(i.split('/')[0].split('-')[1]))",message="a range of weeks must not end before it starts; write 50-53,1-2 instead of 50-2"
	ISOWeek *string `json:"isoWeek,omitempty"`

	// location is the time zone of the schedule, as a name in the IANA time zone database, for example
	// Europe/Zurich. It defaults to UTC.
	//
	// +optional
	// +default="UTC"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'Local' && self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$')",message="must be a name of the IANA time zone database, for example Europe/Zurich or UTC; an offset is written as Etc/GMT-1, which is one hour ahead of UTC"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') || timestamp('2027-01-01T00:00:00Z').getHours(self) >= 0",message="must be a name of the IANA time zone database, for example Europe/Zurich or UTC"
	Location string `json:"location,omitempty"`

	// suspend stops the creation of UpgradeJobs and skips UpgradeJobs that have not commenced yet. It
	// defaults to false.
	//
	// +optional
	// +default=false
	Suspend *bool `json:"suspend,omitempty"` //nolint:kubeapilinter // The field's name and type are given.

	// rhythm determines when upgrades start. Cron starts one each time cron and isoWeek match.
	// UpdateAvailable starts one for each version that becomes available: at the next time that cron
	// selects or, if cron is not set, after pinVersionWindow has passed. It defaults to Cron.
	//
	// +optional
	// +default="Cron"
	Rhythm Rhythm `json:"rhythm,omitempty"`
}

// UpgradeJobTemplate is a template for UpgradeJobs.
//
// +kubebuilder:validation:MinProperties=1
type UpgradeJobTemplate struct {
	// metadata is the metadata of the UpgradeJobs. UpgradeJobHooks and UpgradeSuspensionWindows select
	// UpgradeJobs by these labels.
	//
	// +optional
	Metadata *TemplateMetadata `json:"metadata,omitempty"`

	// spec is the spec of the UpgradeJobs.
	//
	// +optional
	// +default={"config": {"upgradeTimeout": "12h"}}
	Spec UpgradeJobTemplateSpec `json:"spec,omitzero"`
}

// UpgradeJobTemplateSpec is the spec of UpgradeJobs created from a template.
//
// +kubebuilder:validation:MinProperties=1
type UpgradeJobTemplateSpec struct {
	// config is copied into each UpgradeJob.
	//
	// +optional
	// +default={"upgradeTimeout": "12h"}
	Config UpgradeJobConfig `json:"config,omitzero"`
}

// UpgradeConfigStatus reports what the operator has scheduled.
//
// +kubebuilder:validation:MinProperties=0
type UpgradeConfigStatus struct {
	// conditions are Accepted (whether the spec is valid), Scheduled (whether there is a next start),
	// Ready, Reconciling, and Stalled. Other conditions are removed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec reflected in this status.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastScheduledUpgrade is the start of the most recent upgrade with an UpgradeJob.
	//
	// +optional
	LastScheduledUpgrade *metav1.Time `json:"lastScheduledUpgrade,omitempty"`

	// lastScheduledVersion is the version of the most recent upgrade with an UpgradeJob.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	LastScheduledVersion string `json:"lastScheduledVersion,omitempty"`

	// lastSlot is the most recent scheduled start that was handled, and its result.
	//
	// +optional
	LastSlot *UpgradeSlot `json:"lastSlot,omitempty"`

	// handledUntil is the time up to which all scheduled starts have been handled. Before the first one is
	// handled, it is absent, and starts count from the creation of the UpgradeConfig.
	//
	// +optional
	HandledUntil *metav1.Time `json:"handledUntil,omitempty"`

	// nextPossibleSchedules lists the next scheduled starts and what suspends them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	NextPossibleSchedules []NextPossibleSchedule `json:"nextPossibleSchedules,omitempty"`

	// pendingUpdate is the update for the next UpgradeJob of the rhythm UpdateAvailable.
	//
	// +optional
	PendingUpdate *PendingUpdate `json:"pendingUpdate,omitempty"`

	// runNow is the result of the latest request to run an upgrade now.
	//
	// +optional
	RunNow *RunNowStatus `json:"runNow,omitempty"`
}

// UpgradeSlot is a scheduled start and its result.
//
// +kubebuilder:validation:MinProperties=0
type UpgradeSlot struct {
	// time is the scheduled start.
	//
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// result is JobCreated, or the CamelCase reason why no UpgradeJob was created: Suspended, NoUpdate,
	// UpdatesUnknown, TooManyJobs, JobRejected, or Missed.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Result string `json:"result,omitempty"`

	// message explains the result.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// job is the name of the UpgradeJob. It is absent if no UpgradeJob was created.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Job string `json:"job,omitempty"`
}

// NextPossibleSchedule is a scheduled start in the future.
type NextPossibleSchedule struct {
	// time is the scheduled start.
	//
	// +required
	Time metav1.Time `json:"time,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.

	// suspendedBy names what suspends the start: the field schedule.suspend or an UpgradeSuspensionWindow.
	// It is absent if the start is not suspended.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	SuspendedBy string `json:"suspendedBy,omitempty"`
}

// PendingUpdate is an update that has become available.
//
// +kubebuilder:validation:MinProperties=0
type PendingUpdate struct {
	// version is the version of the update.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`

	// since is when the update was first observed.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// RunNowStatus is the result of a request to run an upgrade now.
//
// +kubebuilder:validation:MinProperties=0
type RunNowStatus struct {
	// token is the value of the annotation managedupgrade.appuio.io/run-now that was handled, or its
	// SHA-256 hash if it is longer than 64 bytes.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Token string `json:"token,omitempty"`

	// job is the name of the UpgradeJob that was created. It is absent if no UpgradeJob was created.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Job string `json:"job,omitempty"`
}

// UpgradeConfigList is a list of UpgradeConfigs.
//
// +kubebuilder:object:root=true
type UpgradeConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the UpgradeConfigs.
	Items []UpgradeConfig `json:"items"`
}
