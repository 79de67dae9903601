// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
)

// pollInterval is the interval between two lists of an external kind.
const pollInterval = 200 * time.Millisecond

// pollFunc lists all objects of a kind.
type pollFunc func(context.Context) ([]*unstructured.Unstructured, error)

// pollFuncs returns a cluster's poll functions by kind.
func pollFuncs(cluster *devcluster.Cluster) map[string]pollFunc {
	all := map[string]pollFunc{
		scenario.KindCloudEvent: func(context.Context) ([]*unstructured.Unstructured, error) {
			return scenario.CloudEventObjects(cluster.Sink.Events())
		},
	}
	if running := cluster.Monitoring; running != nil {
		all[scenario.KindSilence] = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
			return fromAlertmanager(ctx, scenario.KindSilence, running.AlertmanagerURL()+"/api/v2/silences", "id", "id")
		}
		all[scenario.KindAlert] = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
			return fromAlertmanager(ctx, scenario.KindAlert, running.AlertmanagerURL()+"/api/v2/alerts", "labels.alertname", "fingerprint")
		}
	}
	return all
}

// fromAlertmanager lists objects from a URL. name and id are the paths of the fields with the name
// and the ID.
func fromAlertmanager(ctx context.Context, kind, url, name, id string) ([]*unstructured.Unstructured, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("listing %ss from Alertmanager: %w", kind, err)
	}
	defer response.Body.Close()
	var list []map[string]any
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("listing %ss: Alertmanager answered %s: %w", kind, response.Status, err)
	}
	var found []*unstructured.Unstructured
	for _, content := range list {
		object := scenario.NewExternal(kind, content, textAt(content, name), textAt(content, id))
		object.SetNamespace(textAt(content, "labels.namespace"))
		found = append(found, object)
	}
	return found, nil
}

func textAt(content map[string]any, path string) string {
	text, _, _ := unstructured.NestedString(content, strings.Split(path, ".")...) // empty if the field is missing
	return text
}

// poller lists a kind periodically and calls the handlers for objects that have changed, like a
// watch.
type poller struct {
	poll     pollFunc
	handlers []scenario.Handler
	known    map[types.UID]*unstructured.Unstructured
}

// run polls until the context ends.
func (p *poller) run(ctx context.Context) {
	for ctx.Err() == nil {
		if found, err := p.poll(ctx); err == nil { // an error indicates that the server is down, which the scenario may intend
			p.update(found)
		}
		pause(ctx, pollInterval)
	}
}

func (p *poller) update(found []*unstructured.Unstructured) {
	gone := p.known
	p.known = map[types.UID]*unstructured.Unstructured{}
	for _, object := range found {
		before := gone[object.GetUID()]
		delete(gone, object.GetUID())
		p.known[object.GetUID()] = object
		if before == nil || !reflect.DeepEqual(before.Object, object.Object) {
			p.notify(object, false)
		}
	}
	for _, object := range gone {
		p.notify(object, true)
	}
}

func (p *poller) notify(object *unstructured.Unstructured, deleted bool) {
	for _, call := range p.handlers {
		call(object, deleted)
	}
}

// pause reports whether the duration has elapsed, rather than the context ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
