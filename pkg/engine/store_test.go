// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// store stores the record as an API server does: as JSON, with nothing shared, and with rounded times.
type store struct {
	t       tester
	stored  history.Record
	saves   int
	plan    func(save int) saveFault // the fault of the n-th save, from 1
	dead    bool                     // all saves of this process fail
	refused bool                     // a save of this pass returned an error
}

// saveFault says what becomes of a save.
type saveFault int

const (
	serveSave      saveFault = iota
	refuseSave               // not applied, returned an error
	refuseAllSaves           // the same, also for all later ones of this process
	loseAnswer               // applied, returned an error
	crashAfter               // applied, and the process crashes
	crashBefore              // not applied, and the process crashes
	loseRecord               // applied, the process crashes, and the record is lost
)

var errStore = errors.New("the store does not answer")

func (s *store) save(_ context.Context, record history.Record) error {
	s.saves++
	if s.dead {
		s.refused = true
		return errStore
	}
	switch s.plan(s.saves) {
	case refuseSave:
		s.refused = true
		return errStore
	case refuseAllSaves:
		s.dead, s.refused = true, true
		return errStore
	case crashBefore:
		panic(crash{})
	case loseAnswer:
		s.put(record)
		s.refused = true
		return errStore
	case crashAfter:
		s.put(record)
		panic(crash{})
	case loseRecord:
		s.lose()
		panic(crash{})
	default:
		s.put(record)
		return nil
	}
}

func (s *store) put(record history.Record) {
	raw, err := json.Marshal(record)
	if err != nil {
		s.t.Fatal(err)
	}
	s.stored = history.Record{}
	if err := json.Unmarshal(raw, &s.stored); err != nil {
		s.t.Fatal(err)
	}
}

func (s *store) load() history.Record { return *s.stored.DeepCopy() }

func (s *store) lose() { s.put(history.Record{Version: "4.4.6"}) }
