// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// jsonReader reads the values in a file one at a time, so a list is never completely in memory.
type jsonReader struct {
	in *bufio.Reader
	// limit is the maximum size of a value, in bytes.
	limit int
	// start holds the beginning of the document, for messages.
	start []byte
	value []byte // reused
}

// next peeks at the next byte that is not white space.
func (r *jsonReader) next() (byte, error) {
	for {
		c, err := r.in.ReadByte()
		if err != nil {
			return 0, err
		}
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0xef || c == 0xbb || c == 0xbf { // including a byte order mark
			continue
		}
		return c, r.in.UnreadByte()
	}
}

// skip consumes a byte.
func (r *jsonReader) skip() {
	if c, err := r.in.ReadByte(); err == nil {
		r.note(c)
	}
}

func (r *jsonReader) note(c byte) {
	if len(r.start) < sniffBytes {
		r.start = append(r.start, c)
	}
}

// read returns the raw text of the next value. It is valid until the next call and may be invalid JSON.
func (r *jsonReader) read() ([]byte, error) {
	if _, err := r.next(); err != nil {
		return nil, err
	}
	r.value = r.value[:0]
	depth, inString := 0, false
	for {
		c, err := r.in.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && depth == 0 && !inString && len(r.value) > 0:
			return r.value, nil
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case len(r.value) >= r.limit:
			return nil, fmt.Errorf("a value is larger than %d MiB", r.limit>>20)
		}
		if depth == 0 && !inString && len(r.value) > 0 && strings.IndexByte(",]}: \t\r\n", c) >= 0 {
			return r.value, r.in.UnreadByte() // end of a number or word
		}
		r.value = append(r.value, c)
		r.note(c)
		switch {
		case inString && c == '\\':
			escaped, err := r.in.ReadByte()
			if err != nil {
				return nil, io.ErrUnexpectedEOF
			}
			r.value = append(r.value, escaped)
			r.note(escaped)
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		default:
			continue
		}
		if depth == 0 && !inString {
			return r.value, nil
		}
	}
}

// each calls add for each element of the next list or for each key of the next object. For an object, add
// must read the value.
func (r *jsonReader) each(add func(value []byte) error) error {
	opening, err := r.next()
	if err != nil {
		return err
	}
	r.skip()
	closing := byte('}')
	if opening == '[' {
		closing = ']'
	}
	for first := true; ; first = false {
		c, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case c == closing:
			r.skip()
			return nil
		case c == ',' && !first:
			r.skip()
		case !first:
			return fmt.Errorf("invalid character %q after an element", c)
		}
		value, err := r.read()
		switch {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		if err := add(value); err != nil {
			return err
		}
	}
}

// colon reads the separator between a key and its value and returns the first byte of the value.
func (r *jsonReader) colon() (byte, error) {
	c, err := r.next()
	if err == nil && c != ':' {
		err = fmt.Errorf("invalid character %q after a key", c)
	}
	if err != nil {
		return 0, err
	}
	r.skip()
	return r.next()
}

// addJSON adds the documents in a JSON file. Values before an error are kept.
func (d *Dump) addJSON(name string, in io.Reader) error {
	r := &jsonReader{in: d.reader(in), limit: d.limits.documentBytes}
	for {
		r.start = r.start[:0]
		first, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err == nil && first == '{':
			err = d.addJSONDocument(name, r)
		case err == nil && first == '[':
			err = r.each(func(value []byte) error { return d.addJSONItem(name, list{}, value, nil) })
		case err == nil:
			var value []byte
			if value, err = r.read(); err == nil {
				err = utiljson.Unmarshal(value, new(any))
			}
		}
		switch {
		case errors.Is(err, errLimit):
			return err
		case err == nil:
			continue
		}
		if isAlerts(r.start) {
			d.alerts = &alerts{err: fmt.Errorf("%s is broken: %w", name, err)}
		}
		d.problem(name, kindIn(r.start), "is broken: "+text.Excerpt(err.Error()))
		return nil
	}
}

// list holds the fields of a list that come before its items.
type list struct{ apiVersion, kind string }

// of returns the kind of the items, or "" if each item has its own.
func (l list) of() string { return strings.TrimSuffix(l.kind, "List") }

// addJSONDocument adds an object or, one at a time, the items of a list.
func (d *Dump) addJSONDocument(name string, r *jsonReader) error {
	fields, pending, isList := map[string]any{}, []any{}, false
	err := r.each(func(quoted []byte) error {
		var key string
		if err := json.Unmarshal(quoted, &key); err != nil {
			return err
		}
		first, err := r.colon()
		if err != nil {
			return err
		}
		if key == "items" && first == '[' {
			isList = true
			var known list
			known.kind, _ = fields["kind"].(string)
			known.apiVersion, _ = fields["apiVersion"].(string)
			return r.each(func(value []byte) error { return d.addJSONItem(name, known, value, &pending) })
		}
		raw, err := r.read()
		if err != nil {
			return err
		}
		var value any
		if err := utiljson.Unmarshal(raw, &value); err != nil {
			return err
		}
		fields[key] = value
		return nil
	})
	if err != nil {
		return err
	}
	if isList {
		fields["items"] = pending
	}
	d.addValue(name, fields, r.start)
	return nil
}

// addJSONItem adds a list item. If the kind is not known yet, the item is added to pending.
func (d *Dump) addJSONItem(name string, of list, value []byte, pending *[]any) error {
	switch {
	case d.count > d.limits.objects || d.kept > d.limits.bytes:
		return errLimit
	case of.kind != "" && !wanted(of.apiVersion, of.kind):
		return nil
	case isPodJSON(value) || of.apiVersion == "v1" && of.kind == "PodList":
		return d.addPod(name, value)
	}
	var item any
	if err := utiljson.Unmarshal(value, &item); err != nil {
		return err
	}
	fields, isObject := item.(map[string]any)
	switch {
	case !isObject && pending != nil:
		d.problem(name, of.of(), "is broken: an item is not an object")
		return nil
	case isObject && fields["kind"] == nil && pending != nil:
		if of.of() == "" {
			*pending = append(*pending, item)
			return nil
		}
		fields["kind"], fields["apiVersion"] = of.of(), of.apiVersion
	}
	d.kept += len(value)
	d.addValue(name, item, nil)
	return nil
}
