// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Job may be suspended by its template, by a queue that has not admitted it, or by another
// client. The cached Job is enough to tell them apart.
func TestSuspension(t *testing.T) {
	t.Parallel()
	template := map[string]string{annotationSuspended: "true"}
	queue := map[string]string{labelQueue: "night"}
	const queued = "suspended by queue night, which has not admitted it: oc describe workloads -n ops"
	for name, tc := range map[string]struct {
		suspend             *bool
		labels, annotations map[string]string
		want                string
	}{
		"not suspended":                {nil, queue, nil, ""},
		"resumed":                      {new(false), queue, template, ""},
		"by its template":              {new(true), nil, template, "suspended: remove suspend from the template"},
		"by a queue":                   {new(true), queue, nil, queued},
		"by its template, for a queue": {new(true), queue, template, queued},
		"by another controller":        {new(true), nil, nil, "suspended by another controller: its template does not suspend it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "a", Labels: tc.labels, Annotations: tc.annotations}}
			job.Spec.Suspend = tc.suspend
			if _, err := StripJob(job); err != nil {
				t.Fatal(err)
			}
			if got := suspension(job); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
