// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The mutate program measures how many defects the tests of packages find. It changes a single
// operator, condition, literal, or statement, runs the tests of the package and then the tests of
// packages that import it, and prints whether a test fails. It does not modify the files of the
// checkout. The same seed selects the same mutants for the same sources. The tests must pass
// without a mutant. A mutant that makes the tests hang counts as detected but is listed separately,
// because a slow machine has the same effect.
//
// Usage: mutate [-seed N] [-n N] [-skip N] [-timeout D] [-dependents=false] PACKAGE...
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"
)

func main() {
	seed := flag.Uint64("seed", 1, "selects the mutants")
	count := flag.Int("n", 200, "the number of mutants that compile")
	skip := flag.Int("skip", 0, "the number of mutants to leave out first; with -n 1, the number of the one to repeat")
	timeout := flag.Duration("timeout", 2*time.Minute, "how long the tests of one package may run; a mutant that makes them hang counts as a timeout")
	dependents := flag.Bool("dependents", true, "run the tests of the packages that import the changed one, too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, options{*seed, *count, *skip, *timeout, *dependents}, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		stop()
		os.Exit(1)
	}
}

type options struct {
	seed       uint64
	count      int
	skip       int
	timeout    time.Duration
	dependents bool
}

func run(ctx context.Context, o options, patterns []string) error {
	packages, err := load(ctx, patterns)
	if err != nil {
		return err
	}
	if err := baseline(ctx, packages, o); err != nil {
		return err
	}
	mutants, err := mutantsOf(packages)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(o.seed, 0)) //nolint:gosec // A sample that can be drawn again.
	random.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
	fmt.Printf("seed %d: %d of %d mutants of %d packages\n", o.seed, o.count, len(mutants), len(packages))
	results := map[result]int{}
	for i := min(o.skip, len(mutants)); i < len(mutants); i++ {
		if tried(results) == o.count {
			break
		}
		r, by, err := try(ctx, mutants[i], o)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("interrupted at mutant %d: %w", i, ctx.Err())
		case err != nil:
			return err
		}
		if results[r]++; r != invalid {
			fmt.Printf("%s #%d %s%s\n", r, i, mutants[i], by)
		}
	}
	fmt.Println(score(results))
	return nil
}

// tried returns the number of mutants that compiled.
func tried(results map[result]int) int {
	return results[killed] + results[timedOut] + results[survived]
}

// score summarizes the results.
func score(results map[result]int) string {
	detected := results[killed] + results[timedOut]
	return fmt.Sprintf("score: %d of %d mutants detected (%d %%), %d of them by a timeout; %d more did not compile",
		detected, tried(results), 100*detected/max(1, tried(results)), results[timedOut], results[invalid])
}
