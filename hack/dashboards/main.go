// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The dashboards program writes the dashboards for the OpenShift console and for Grafana from a
// single table of panels. The console uses the format of Grafana 4: rows without positions.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

const folder = "deploy/dashboards/"

func main() {
	for _, d := range dashboards {
		for file, content := range map[string]object{"console-": d.forConsole(), "grafana-": d.forGrafana()} {
			if err := write(folder+file+d.name+".json", content); err != nil {
				fmt.Fprintln(os.Stderr, "dashboards:", err)
				os.Exit(1)
			}
		}
	}
}

type object map[string]any

func write(path string, dashboard object) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(dashboard); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644) //nolint:gosec // manifests are public
}

// forConsole returns the dashboard in the format of the OpenShift console. A row is 12 units wide.
func (d dashboard) forConsole() object {
	const width = 12
	var out []object
	id := 0
	for _, r := range d.rows {
		var panels []object
		for _, p := range r.panels {
			id++
			panel := object{
				"id": id, "title": p.title, "type": "graph", "datasource": "prometheus", "span": width / len(r.panels),
				"targets": []object{p.target(object{"format": "time_series", "intervalFactor": 2})},
				"yaxes":   []object{{"format": p.unit, "show": true, "min": 0}, {"format": "short", "show": false}},
			}
			if p.kind == stat {
				panel["type"], panel["format"], panel["valueName"] = "singlestat", "none", "current"
			}
			panels = append(panels, panel)
		}
		out = append(out, object{"title": r.title, "showTitle": true, "panels": panels})
	}
	return object{
		"title": d.title, "uid": d.uid, "schemaVersion": 14, "version": 1, "tags": []string{"managed-upgrade-operator"},
		"time": object{"from": "now-6h", "to": "now"}, "refresh": "30s", "timezone": "UTC",
		"templating": object{"list": d.templating("prometheus")}, "rows": out,
	}
}

// forGrafana returns the dashboard in Grafana's format. A row is 24 units wide.
func (d dashboard) forGrafana() object {
	const width, rowHeight, statHeight, graphHeight = 24, 1, 4, 8
	datasource := object{"type": "prometheus", "uid": "${datasource}"}
	var panels []object
	id, y := 0, 0
	for _, r := range d.rows {
		id++
		panels = append(panels, object{"id": id, "type": "row", "title": r.title, "collapsed": false, "panels": []object{}, "gridPos": object{"x": 0, "y": y, "w": width, "h": rowHeight}})
		y += rowHeight
		height, w := statHeight, width/len(r.panels)
		for i, p := range r.panels {
			id++
			form := "stat"
			if p.kind == graph {
				form, height = "timeseries", graphHeight
			}
			panels = append(panels, object{
				"id": id, "type": form, "title": p.title, "datasource": datasource,
				"gridPos":     object{"x": i * w, "y": y, "w": w, "h": height},
				"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
				"targets":     []object{p.target(object{"datasource": datasource})},
			})
		}
		y += height
	}
	return object{
		"title": d.title, "uid": d.uid, "schemaVersion": 39, "version": 1, "tags": []string{"managed-upgrade-operator"},
		"time": object{"from": "now-6h", "to": "now"}, "refresh": "30s", "timezone": "utc", "editable": true,
		"templating": object{"list": append([]object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}, d.templating(datasource)...)},
		"panels":     panels,
	}
}

// templating returns the variables of the dashboard. The value All includes series without the
// label.
func (d dashboard) templating(datasource any) []object {
	var list []object
	for _, label := range d.variables {
		list = append(list, object{
			"name": label, "label": strings.ToUpper(label[:1]) + label[1:], "type": "query", "datasource": datasource,
			"query": fmt.Sprintf("label_values(%s, %s)", d.source, label), "refresh": 2, "sort": 1,
			"includeAll": true, "allValue": ".*", "multi": false, "current": object{"text": "All", "value": "$__all"},
		})
	}
	return list
}

// target returns the panel's query with additional fields.
func (p panel) target(fields object) object {
	fields["refId"], fields["expr"], fields["legendFormat"] = "A", selectors.Replace(p.expr), p.legend
	return fields
}
