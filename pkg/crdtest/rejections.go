// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// StrictError takes the place of the field in a rejection of an unknown field.
const StrictError = "strict decoding error"

// CompareRejections reports the differences between the wanted rejections and those in an error
// from the API server. A wanted rejection is a field, a colon, and part of the message.
func CompareRejections(tb testing.TB, want []string, err error) {
	tb.Helper()
	got := rejections(err)
	for _, rejection := range want {
		field, message, _ := strings.Cut(rejection, ": ")
		i := slices.IndexFunc(got, func(found string) bool {
			return isAt(found, field) && strings.Contains(found, message) && !slices.Contains(want, found)
		})
		if i >= 0 {
			got[i] = rejection
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got, cmpopts.EquateEmpty()); diff != "" {
		tb.Errorf("rejections (-want +got):\n%s", diff)
	}
}

// CompareAdmission is CompareRejections for an error from the test kit. The test kit skips the
// validation rules if the schema is violated.
func CompareAdmission(tb testing.TB, want []string, err error) {
	tb.Helper()
	bySchema := func(rejection string) bool { return strings.Contains(rejection, ": should ") }
	if slices.ContainsFunc(want, bySchema) {
		want = slices.DeleteFunc(slices.Clone(want), func(rejection string) bool { return !bySchema(rejection) })
	}
	CompareRejections(tb, want, err)
}

// isAt reports whether a rejection concerns the field. Rejections of unknown fields and of values
// of the wrong type name the field in the message.
func isAt(rejection, field string) bool {
	inMessage := field == StrictError || strings.HasPrefix(rejection, "<nil>: ")
	return strings.HasPrefix(rejection, field+": ") || inMessage && strings.Contains(rejection, field)
}

// rejections returns the fields and messages in an error from the API server.
func rejections(err error) []string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0:
		return []string{err.Error()}
	}
	var found []string
	for _, cause := range status.Status().Details.Causes {
		if strings.Contains(cause.Message, "some validation rules were not checked") {
			continue
		}
		found = append(found, cause.Field+": "+cause.Message)
	}
	return found
}
