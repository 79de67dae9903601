// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

func TestValidate_reports_all_errors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("A", 65)
	for name, tc := range map[string]struct {
		change func(s *script)
		want   []string
	}{
		"valid": {func(*script) {}, nil},
		"a step without a name": {
			func(s *script) { s.at("First").Name = "" },
			[]string{`step name "" is not one CamelCase word of at most 64 letters and digits`},
		},
		"names that are not one CamelCase word": {
			func(s *script) { s.at("First").Name, s.at("Last").Name = "first", "Last Step" },
			[]string{
				`step name "first" is not one CamelCase word of at most 64 letters and digits`,
				`step name "Last Step" is not one CamelCase word of at most 64 letters and digits`,
			},
		},
		"a name that is too long": {
			func(s *script) { s.at("First").Name = long },
			[]string{`step name "` + long + `" is not one CamelCase word of at most 64 letters and digits`},
		},
		"invalid former name": {
			func(s *script) { s.at("First").FormerNames = []string{"was-first"} },
			[]string{`step name "was-first" is not one CamelCase word of at most 64 letters and digits`},
		},
		"a name used twice": {
			func(s *script) { s.at("Last").Name = "First" },
			[]string{"step name First is used twice"},
		},
		"name of a cleanup step": {
			func(s *script) { s.at("LastCleaned").Name = "First" },
			[]string{"step name First is used twice"},
		},
		"former name that another step has": {
			func(s *script) { s.at("First").FormerNames = []string{"Last"} },
			[]string{"step name Last is used twice"},
		},
		"former name of two steps": {
			func(s *script) {
				s.at("First").FormerNames, s.at("Last").FormerNames = []string{"Old"}, []string{"Old"}
			},
			[]string{"step name Old is used twice"},
		},
		"step without Do": {
			func(s *script) { s.at("Last").Do = nil },
			[]string{"step Last does nothing: Do is nil"},
		},
		"cleanup step without Do": {
			func(s *script) { s.at("LastCleaned").Do = nil },
			[]string{"step LastCleaned does nothing: Do is nil"},
		},
		"step without Doc": {
			func(s *script) { s.at("Last").Doc = "" },
			[]string{"step Last has no Doc"},
		},
		"two steps that commit": {
			func(s *script) { s.at("Last").Commit = s.at("Commit").Commit },
			[]string{"2 steps commit, at most one may"},
		},
		"cleanup that commits": {
			func(s *script) { s.at("LastCleaned").Commit, s.at("Commit").Commit = s.at("Commit").Commit, nil },
			[]string{"step LastCleaned commits, but is not one of the steps before the cleanup"},
		},
		"commit without Observe": {
			func(s *script) { s.at("Commit").Commit.Observe = nil },
			[]string{"step Commit commits, but has no Observe"},
		},
		"commit after itself": {
			func(s *script) { s.at("Commit").Commit.After = "Commit" },
			[]string{"step Commit commits after step Commit, which does not precede it"},
		},
		"commit after a step that does not exist": {
			func(s *script) { s.at("Commit").Commit.After = "Frist" },
			[]string{"step Commit commits after step Frist, which does not precede it"},
		},
		"gates and keep-alives without a name or a function": {
			func(s *script) {
				check := recordCall(new([]string), "", engine.Result{}, nil)
				s.at("First").Gates = []engine.Gate{{Name: "A", Check: check}, {Name: "A", Check: check}, {Name: "B"}, {Check: check}}
				s.at("First").KeepAlive = []engine.KeepAlive{{Name: "A", Renew: check}, {Name: "b", Renew: check}, {Name: "C"}}
			},
			[]string{
				"step First: gate name A is used twice",
				"step First: gate B does nothing",
				`step First: gate name "" is not one CamelCase word of at most 64 letters and digits`,
				`step First: keep-alive name "b" is not one CamelCase word of at most 64 letters and digits`,
				"step First: keep-alive C does nothing",
			},
		},
		"reasons that are not one CamelCase word": {
			func(s *script) {
				s.at("First").FailReason, s.MissedAs, s.SkipReasons = "too late", "missed!", []string{"Fine", "not fine"}
			},
			[]string{
				`step First: FailReason "too late" is not one CamelCase word`,
				`reason "missed!" is not one CamelCase word`,
				`reason "not fine" is not one CamelCase word`,
			},
		},
		"a final step that commits": {
			func(s *script) {
				s.Finally = append(s.Finally, s.step("End"))
				s.at("End").Commit, s.at("Commit").Commit = s.at("Commit").Commit, nil
			},
			[]string{"step End commits, but is not one of the steps before the cleanup"},
		},
		"a step inserted next to one that does not exist": {
			func(s *script) {
				s.Runbook = s.InsertAfter("Frist", s.step("Added")).InsertBefore("Lats", s.step("AlsoAdded"))
			},
			[]string{
				"step Added cannot be inserted next to step Frist, which does not exist",
				"step AlsoAdded cannot be inserted next to step Lats, which does not exist",
			},
		},
		"all at once": {
			func(s *script) {
				s.at("First").Do, s.at("First").Doc = nil, ""
				s.at("Commit").Commit.Observe = nil
				s.at("Last").Commit = s.commit(always(false))
				s.at("FirstCleaned").FormerNames = []string{"Last", "x"}
			},
			[]string{
				"step First does nothing: Do is nil",
				"step First has no Doc",
				"step Commit commits, but has no Observe",
				"step name Last is used twice",
				`step name "x" is not one CamelCase word of at most 64 letters and digits`,
				"2 steps commit, at most one may",
			},
		},
		"no steps at all": {
			func(s *script) { s.Runbook = engine.Runbook{} },
			[]string{"there are no steps"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := newScript(t, "First", "Commit", "Last")
			tc.change(s)
			var got []string
			if err := s.Validate(); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunbook_insert(t *testing.T) {
	t.Parallel()
	_, s := newScript(t, "First", "Commit", "Last")
	s.Finally = []engine.Step{s.step("End")}
	names := func(steps []engine.Step) (all []string) {
		for _, step := range steps {
			all = append(all, step.Name)
		}
		return all
	}
	before := names(s.Steps)
	book := s.InsertAfter("First", s.step("A")).InsertBefore("First", s.step("B")).InsertAfter("Last", s.step("C")).
		InsertBefore("LastCleaned", s.step("D")).InsertAfter("End", s.step("E"))
	if err := book.Validate(); err != nil {
		t.Error(err)
	}
	got := [][]string{names(book.Steps), names(book.Cleanup), names(book.Finally)}
	want := [][]string{{"B", "First", "A", "Commit", "Last", "C"}, {"FirstCleaned", "D", "LastCleaned"}, {"End", "E"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, names(s.Steps)); diff != "" {
		t.Errorf("the runbook that it was made from has changed (-before +after):\n%s", diff)
	}
}

func TestRunbook_with_commit_gates(t *testing.T) {
	t.Parallel()
	_, s := newScript(t, "First", "Commit", "Last")
	check := recordCall(new([]string), "", engine.Result{}, nil)
	s.at("Commit").Gates = []engine.Gate{{Name: "Slow", Check: check}}
	book := s.WithCommitGates(engine.Gate{Name: "Freeze", Check: check})
	var got []string
	for _, gate := range book.Steps[1].Gates {
		got = append(got, gate.Name)
	}
	if diff := cmp.Diff([]string{"Freeze", "Slow"}, got); diff != "" || len(s.at("Commit").Gates) != 1 {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
}

func TestValidate_accepts_the_tables_of_the_tests(t *testing.T) {
	t.Parallel()
	for name, book := range map[string]engine.Runbook{
		"the cluster's":   newCluster(t).book(),
		"the benchmarks'": twenty(engine.Done("")),
	} {
		if err := book.Validate(); err != nil {
			t.Errorf("%s table: %v", name, err)
		}
	}
}
