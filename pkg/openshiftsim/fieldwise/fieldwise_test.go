// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldwise_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/fieldwise"
)

type fields = map[string]any

func TestApply(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		object  fields
		configs []fields
		change  func(fields) // by another manager, before the last apply
		want    fields
	}{
		"fields of a map are merged": {
			object:  fields{"desired": fields{"image": "old", "force": true}},
			configs: []fields{{"desired": fields{"version": "2"}}},
			want:    fields{"desired": fields{"version": "2", "image": "old", "force": true}},
		},
		"owned fields are overwritten": {
			object:  fields{"desired": fields{"image": "old", "force": true}},
			configs: []fields{{"desired": fields{"image": "", "force": false}}},
			want:    fields{"desired": fields{"image": "", "force": false}},
		},
		"what the manager owns is removed, with maps that are empty": {
			object:  fields{"channel": "a"},
			configs: []fields{{"desired": fields{"version": "2"}, "channel": "b"}, {"channel": "b"}},
			want:    fields{"channel": "b"},
		},
		"a field that another manager set to the same value stays": {
			object:  fields{"desired": fields{"force": false, "image": "old"}},
			configs: []fields{{"desired": fields{"force": false, "image": ""}}, {}},
			want:    fields{"desired": fields{"force": false}},
		},
		"a field that another manager has changed stays": {
			object:  fields{},
			configs: []fields{{"desired": fields{"version": "2"}}, {}},
			change:  func(o fields) { o["desired"] = fields{"version": "3"} },
			want:    fields{"desired": fields{"version": "3"}},
		},
		"applying again changes no owner": {
			object:  fields{},
			configs: []fields{{"channel": "a"}, {"channel": "a"}, {}},
			want:    fields{},
		},
		"a list is replaced": {
			object:  fields{"list": []any{"a", "b"}},
			configs: []fields{{"list": []any{"c"}}},
			want:    fields{"list": []any{"c"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var owned fieldwise.Owned
			for i, config := range tc.configs {
				if tc.change != nil && i == len(tc.configs)-1 {
					tc.change(tc.object)
				}
				owned = fieldwise.Apply(tc.object, config, owned)
			}
			if diff := cmp.Diff(tc.want, tc.object); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
		})
	}
}
