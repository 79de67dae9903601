// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Duration is a length of time in hours, minutes, and seconds, in this order, each with at most five
// digits, for example 2h, 90m, or 1h30m. The original spelling is preserved.
//
// +kubebuilder:validation:MaxLength=18
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$')",message="must be hours, minutes, and seconds in this order, each with at most 5 digits, for example 1h30m, or 24h for a day"
type Duration string

// Timestamp is a date and time with an offset (RFC 3339), for example 2027-03-02T21:00:00Z or
// 2027-03-02T22:00:00+01:00. The original spelling is preserved.
//
// +kubebuilder:validation:MaxLength=35
// +kubebuilder:validation:XValidation:rule="self.matches('^[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$')",message="must be a date and time with an offset as in RFC 3339, in upper case, for example 2027-03-02T21:00:00Z or 2027-03-02T22:00:00+01:00"
// +kubebuilder:validation:XValidation:rule="!self.matches('^.{4}-(02-3|(04|06|09|11)-31)') && (!self.matches('^[12][0-9]{3}-02-29') || (timestamp(self.substring(0, 4) + '-03-01T00:00:00Z') - duration('24h')).getDate() == 29)",message="must be a day that its month has, for example 2027-02-28T21:00:00Z"
type Timestamp string
