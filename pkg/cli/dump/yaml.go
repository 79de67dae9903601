// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// yamlReader reads the documents in a file. It reads lists one item at a time.
type yamlReader struct {
	dump *Dump
	name string
	// document is the text outside of list items. item is the current item.
	document, item []byte
	// start holds the beginning of the document, for messages.
	start []byte
	// indent is the column of the hyphens of list items, or -1 outside of items.
	indent int
	// awaitsItems is set if the previous line was "items:".
	awaitsItems bool
	isList      bool
	pending     []any
	// last is the kind of the last document, or empty if nothing was read from it.
	last string
}

// addYAML adds the documents in a YAML file. Values before an error are kept.
func (d *Dump) addYAML(name string, in io.Reader) error {
	r := &yamlReader{dump: d, name: name, indent: -1}
	lines := d.reader(in)
	complete := true
	for {
		line, err := readLine(lines, d.limits.documentBytes)
		if len(line) > 0 {
			complete = line[len(line)-1] == '\n'
			if err := r.add(line); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			if err := r.end(); err != nil {
				return err
			}
			if r.last != "" && !complete {
				d.problem(name, r.last, "may be cut off: its last line has no end")
			}
			return nil
		case err != nil:
			d.problem(name, kindIn(r.start), "is broken: "+text.Excerpt(err.Error()))
			return nil
		case len(r.document)+len(r.item) > d.limits.documentBytes:
			d.problem(name, kindIn(r.start), fmt.Sprintf("has a document that is larger than %d MiB", d.limits.documentBytes>>20))
			return nil
		}
	}
}

// readLine returns a line including its line break. It is valid until the next call.
func readLine(in *bufio.Reader, limit int) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) && len(long) < limit {
		line, err = in.ReadSlice('\n')
		long = append(long, line...)
	}
	return long, err
}

// indentOf returns the indentation of a line, and the line without indentation and line break.
func indentOf(line []byte) (int, []byte) {
	rest := bytes.TrimLeft(line, " ")
	return len(line) - len(rest), bytes.TrimRight(rest, " \t\r\n")
}

// isItem reports whether a line without indentation starts a list item.
func isItem(rest []byte) bool {
	return len(rest) > 0 && rest[0] == '-' && (len(rest) == 1 || rest[1] == ' ')
}

// add adds a line.
func (r *yamlReader) add(line []byte) error {
	if left := sniffBytes - len(r.start); left > 0 {
		r.start = append(r.start, line[:min(left, len(line))]...)
	}
	indent, rest := indentOf(line)
	switch {
	case indent == 0 && bytes.HasPrefix(rest, []byte("---")) && (len(rest) == 3 || rest[3] == ' '):
		return r.end()
	case len(rest) == 0 || rest[0] == '#' && indent == 0:
		return nil
	case r.awaitsItems && isItem(rest):
		r.awaitsItems, r.isList, r.indent = false, true, indent
		r.document = append(r.document, "items: []\n"...)
	case r.awaitsItems:
		r.awaitsItems = false
		r.document = append(r.document, "items:\n"...)
	}
	switch {
	case r.indent >= 0 && indent == r.indent && isItem(rest):
		if err := r.endItem(); err != nil {
			return err
		}
		r.item = append(r.item, line...)
		r.item[indent] = ' '
		return nil
	case r.indent >= 0 && indent > r.indent:
		r.item = append(r.item, line...)
		return nil
	case r.indent >= 0:
		if err := r.endItem(); err != nil {
			return err
		}
		r.indent = -1
	}
	if indent == 0 && string(rest) == "items:" && !r.isList {
		r.awaitsItems = true
		return nil
	}
	r.document = append(r.document, line...)
	return nil
}

// list returns the list fields read so far.
func (r *yamlReader) list() list {
	apiVersion, kind := typeOf(r.document, 0)
	return list{apiVersion, kind}
}

// typeOf returns the apiVersion and kind of an object whose fields start in the given column.
func typeOf(object []byte, column int) (apiVersion, kind string) {
	for line := range bytes.Lines(object) {
		if len(line) <= column || line[column] != 'a' && line[column] != 'k' {
			continue
		}
		indent, rest := indentOf(line)
		key, value, _ := bytes.Cut(rest, []byte(":"))
		word := strings.Trim(string(bytes.TrimSpace(value)), `"'`)
		switch {
		case indent != column:
		case string(key) == "kind":
			kind = word
		case string(key) == "apiVersion":
			apiVersion = word
		}
	}
	return apiVersion, kind
}

// endItem adds the current list item. If the kind is not known yet, the item is added to pending.
func (r *yamlReader) endItem() error {
	item := r.item
	r.item = r.item[:0]
	if len(item) == 0 {
		return nil
	}
	of := r.list()
	switch {
	case of.kind != "" && !wanted(of.apiVersion, of.kind):
		return nil
	case r.dump.count > r.dump.limits.objects || r.dump.kept > r.dump.limits.bytes:
		return errLimit
	}
	trimmed := trimYAML(item, of)
	r.dump.noteTime(trimmed.newest)
	if trimmed.kind != "" && !wanted(trimmed.apiVersion, trimmed.kind) {
		return nil
	}
	content, err := yaml.YAMLToJSON(trimmed.text)
	if err == nil {
		known := of
		if known.of() == "" && trimmed.kind != "" {
			known = list{trimmed.apiVersion, trimmed.kind + "List"}
		}
		err = r.dump.addJSONItem(r.name, known, content, &r.pending)
	}
	if errors.Is(err, errLimit) {
		return err
	}
	if err != nil {
		r.broken(err, trimmed.kind)
	}
	return nil
}

func (r *yamlReader) broken(err error, kind string) {
	if kind == "" {
		kind = kindIn(r.start)
	}
	r.dump.problem(r.name, kind, "is broken: "+text.Excerpt(err.Error()))
}

// end adds the current document.
func (r *yamlReader) end() error {
	if r.awaitsItems {
		r.document = append(r.document, "items:\n"...)
	}
	err := r.endItem()
	if err == nil && (len(r.document) > 0 || r.isList) {
		r.endDocument()
	}
	r.document, r.start, r.pending = r.document[:0], r.start[:0], nil
	r.indent, r.isList, r.awaitsItems = -1, false, false
	return err
}

func (r *yamlReader) endDocument() {
	r.last = ""
	trimmed := trimYAML(r.document, list{})
	r.dump.noteTime(trimmed.newest)
	if trimmed.apiVersion != "" && trimmed.kind != "" && !wanted(trimmed.apiVersion, trimmed.kind) {
		return
	}
	content, err := yaml.YAMLToJSON(trimmed.text)
	var value any
	switch {
	case err == nil && trimmed.kind == "Pod" && trimmed.apiVersion == "v1":
		r.last = "Pod"
		err = r.dump.addPod(r.name, content)
	case err == nil:
		err = utiljson.Unmarshal(content, &value)
	}
	if err != nil {
		r.broken(err, trimmed.kind)
		return
	}
	fields, isObject := value.(map[string]any)
	if isObject && r.isList {
		fields["items"] = r.pending
		if r.pending == nil {
			fields["items"] = []any{}
		}
	}
	r.dump.kept += len(content)
	r.dump.addValue(r.name, value, r.start)
	if kind, _ := fields["kind"].(string); kind == "List" {
		r.last = kindIn(r.start)
	} else if isObject {
		r.last = kind
	}
}

// trimmedYAML is the text of an object without fields that are never read.
type trimmedYAML struct {
	text             []byte
	apiVersion, kind string
	// newest is the latest time in the dropped fields.
	newest time.Time
}

// isKept reports whether a field is read. Other fields are not even decoded, because containers make up most
// of a pod.
func isKept(kind, section, field string) bool {
	switch {
	case section == "metadata":
		return field != "managedFields"
	case kind == "Pod" && section == "spec":
		return field == "nodeName" || field == "terminationGracePeriodSeconds"
	case kind == "Pod" && section == "status":
		return field == "phase" || field == "conditions"
	case kind == "Node" && section == "status":
		return field != "images"
	case kind == "MachineConfig" && section == "spec":
		return field != "config"
	}
	return true
}

// trimYAML drops the lines of fields that are never read. The lines of a field are indented more than its
// key. Only list items may start in the same column as the key.
func trimYAML(object []byte, of list) trimmedYAML {
	base, _ := indentOf(object)
	out := trimmedYAML{apiVersion: of.apiVersion, kind: of.of()}
	if apiVersion, kind := typeOf(object, base); kind != "" {
		out.apiVersion, out.kind = apiVersion, kind
	}
	kept := make([]byte, 0, len(object))
	section, column, dropped := "", -1, -1
	for line := range bytes.Lines(object) {
		indent, rest := indentOf(line)
		if dropped >= 0 && (len(rest) == 0 || indent > dropped || indent == dropped && isItem(rest)) {
			out.note(rest)
			continue
		}
		dropped = -1
		key, _, isKey := strings.Cut(string(rest[:min(len(rest), 64)]), ":")
		switch {
		case len(rest) == 0:
		case indent == base && isKey:
			section, column = key, -1
		case indent > base && isKey && (column < 0 || indent == column):
			column = indent
			if !isKept(out.kind, section, key) {
				dropped = indent
				continue
			}
		}
		kept = append(kept, line...)
	}
	out.text = kept
	return out
}

// note records the time in a line of managed fields.
func (t *trimmedYAML) note(line []byte) {
	value, is := bytes.CutPrefix(bytes.TrimPrefix(line, []byte("- ")), []byte("time: "))
	if !is {
		return
	}
	if at, err := time.Parse(time.RFC3339, strings.Trim(string(value), `"'`)); err == nil && at.After(t.newest) {
		t.newest = at
	}
}
