// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
)

// What is looked at as if it were an object, and is none of the API server's.
const (
	kindAlert      = "Alert"
	kindSilence    = "Silence"
	kindCloudEvent = "CloudEvent"

	externalAPIVersion = "devcluster/v1" // their API version, in which nobody can ask for them
)

// pollInterval is how often those are looked at.
const pollInterval = 200 * time.Millisecond

// pollFunc names all of a kind as they are now.
type pollFunc func(context.Context) ([]*unstructured.Unstructured, error)

// pollFuncs are those of a cluster, by kind.
func pollFuncs(cluster *devcluster.Cluster) map[string]pollFunc {
	all := map[string]pollFunc{
		kindCloudEvent: func(context.Context) ([]*unstructured.Unstructured, error) { return cloudEvents(cluster) },
	}
	if running := cluster.Monitoring; running != nil {
		all[kindSilence] = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
			return fromAlertmanager(ctx, kindSilence, running.AlertmanagerURL()+"/api/v2/silences", "id", "id")
		}
		all[kindAlert] = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
			return fromAlertmanager(ctx, kindAlert, running.AlertmanagerURL()+"/api/v2/alerts", "labels.alertname", "fingerprint")
		}
	}
	return all
}

func cloudEvents(cluster *devcluster.Cluster) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, one := range cluster.Sink.Events() {
		content := map[string]any{}
		text, err := json.Marshal(one)
		if err == nil {
			err = json.Unmarshal(text, &content)
		}
		if err != nil {
			return nil, fmt.Errorf("reading what the receiver got: %w", err)
		}
		found = append(found, asObject(kindCloudEvent, content, one.ID(), one.Source()+" "+one.ID()))
	}
	return found, nil
}

// fromAlertmanager asks for a list. The paths say where in an element its name and its id are.
func fromAlertmanager(ctx context.Context, kind, url, name, id string) ([]*unstructured.Unstructured, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking Alertmanager: %w", err)
	}
	defer response.Body.Close()
	var list []map[string]any
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asking Alertmanager: it answers %s, %w", response.Status, err)
	}
	var found []*unstructured.Unstructured
	for _, content := range list {
		object := asObject(kind, content, textAt(content, name), textAt(content, id))
		object.SetNamespace(textAt(content, "labels.namespace"))
		found = append(found, object)
	}
	return found, nil
}

func textAt(content map[string]any, path string) string {
	text, _, _ := unstructured.NestedString(content, strings.Split(path, ".")...) // what is missing has no name
	return text
}

func asObject(kind string, content map[string]any, name, id string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(externalAPIVersion, kind))
	object.SetName(name)
	object.SetUID(types.UID(id))
	return object
}

// poller looks at all of a kind time after time, and tells of what has changed, as a watch does.
type poller struct {
	poll     pollFunc
	handlers []handler
	known    map[types.UID]*unstructured.Unstructured
}

// run looks until the context ends.
func (p *poller) run(ctx context.Context) {
	for ctx.Err() == nil {
		if found, err := p.poll(ctx); err == nil { // otherwise whoever is asked is down, which may well be the story
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
