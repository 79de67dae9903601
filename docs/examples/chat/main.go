// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The chat program receives the operator's CloudEvents and posts messages to Slack or Microsoft
// Teams.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"
)

type event struct {
	ID, Source, Type string
	Data             struct {
		Cluster, Message, Reason, Severity, Step, Version string
		Object                                            struct{ APIVersion, Kind, Namespace, Name string }
	}
}

// text returns the message, or "" for events without one, such as a step that is waiting or done.
func (e event) text(console string) string {
	kind := e.Type[strings.LastIndex(e.Type, ".")+1:]
	if strings.Contains(e.Type, ".step.") && kind != "failed" && kind != "unknown" {
		return ""
	}
	d, o := e.Data, e.Data.Object
	where := cmp.Or(d.Cluster, e.Source)
	if o.Kind == "ManagedClustersUpgrade" {
		where = "fleet " + o.Name
	}
	if d.Step != "" {
		where += ", step " + d.Step
	}
	text := fmt.Sprintf("%s: upgrade to %s %s: %s", where, cmp.Or(d.Version, "no version"), kind, cmp.Or(d.Message, d.Reason))
	if console != "" {
		text += fmt.Sprintf(" %s/k8s/ns/%s/%s~%s/%s", console, o.Namespace, strings.ReplaceAll(o.APIVersion, "/", "~"), o.Kind, o.Name)
	}
	return text
}

// handler responds to the operator: 2xx once the message is posted, 400 if it is not an event, and
// 502 to request a retry.
func handler(url, token, console string, teams bool) http.Handler {
	chat := &http.Client{Timeout: 5 * time.Second}
	posted := map[string]bool{}                                            // IDs of recent events; forgotten ones may be posted twice
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // the operator sends one event at a time
		var e event
		if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
		} else if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&e); err != nil {
			w.WriteHeader(http.StatusBadRequest)
		} else if text := e.text(console); text != "" && !posted[e.Source+e.ID] {
			message := map[string]any{"text": text}
			if teams {
				card := map[string]any{"type": "AdaptiveCard", "version": "1.4", "body": []any{map[string]any{"type": "TextBlock", "wrap": true, "text": text}}}
				message = map[string]any{"type": "message", "attachments": []any{map[string]any{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}}}
			}
			body, _ := json.Marshal(message)
			answer, err := chat.Post(url, "application/json", bytes.NewReader(body))
			if err != nil || answer.Body.Close() != nil || answer.StatusCode/100 != 2 {
				w.WriteHeader(http.StatusBadGateway)
			} else if posted[e.Source+e.ID] = true; len(posted) > 10000 {
				clear(posted)
			}
		}
	})
}

func main() {
	h := handler(os.Getenv("CHAT_URL"), os.Getenv("TOKEN"), os.Getenv("CONSOLE_URL"), os.Getenv("CHAT") == "teams")
	server := &http.Server{Addr: cmp.Or(os.Getenv("ADDRESS"), ":8443"), Handler: h, ReadTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServeTLS(cmp.Or(os.Getenv("CERT_DIR"), "/tls")+"/tls.crt", cmp.Or(os.Getenv("CERT_DIR"), "/tls")+"/tls.key"))
}
