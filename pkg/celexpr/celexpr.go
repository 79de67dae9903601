// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package celexpr evaluates expressions of the Common Expression Language about Kubernetes objects. An expression has the
// variable object, as in a ValidatingAdmissionPolicy, and returns a bool. Its length and its cost are bounded.
//
// Nothing is set up until the first expression is compiled: a process without expressions needs no memory for them.
package celexpr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

const (
	// MaxLength bounds an expression, in bytes.
	MaxLength = 1024
	// costLimit bounds one evaluation. It is the limit of the API server for one expression of an admission policy.
	costLimit = 1_000_000
	// interruptInterval is the number of iterations of a comprehension between two looks at the context.
	interruptInterval = 100
	// maxCompiled bounds the compiled expressions that are kept.
	maxCompiled = 256
)

var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("object", cel.DynType), cel.OptionalTypes(), ext.Strings(),
		cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), cel.ParserExpressionSizeLimit(MaxLength),
	)
})

var (
	mu       sync.Mutex
	compiled = map[string]program{}
)

// program is a compiled expression, or why it could not be compiled.
type program struct {
	cel.Program

	err error
}

// Evaluator compiles and evaluates expressions. All evaluators share what was compiled.
type Evaluator struct{}

// Compile returns why an expression is invalid, or nil if it is valid.
func (Evaluator) Compile(expression string) error { return programOf(expression).err }

// Holds reports whether an expression is true for an object. An error means that this could not be determined, for
// example because the object lacks a field that the expression reads.
func (Evaluator) Holds(ctx context.Context, expression string, object map[string]any) (bool, error) {
	p := programOf(expression)
	if p.err != nil {
		return false, p.err
	}
	result, _, err := p.ContextEval(ctx, map[string]any{"object": object})
	if err != nil {
		return false, fmt.Errorf("evaluating the expression: %w", err)
	}
	holds, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the expression returns a %s, not a bool", result.Type().TypeName())
	}
	return holds, nil
}

func programOf(expression string) program {
	mu.Lock()
	defer mu.Unlock()
	if known, ok := compiled[expression]; ok {
		return known
	}
	if len(compiled) >= maxCompiled {
		clear(compiled)
	}
	p := program{}
	p.Program, p.err = compile(expression)
	compiled[expression] = p
	return p
}

func compile(expression string) (cel.Program, error) {
	if len(expression) > MaxLength {
		return nil, fmt.Errorf("must have at most %d bytes", MaxLength)
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("setting up the expressions: %w", err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		var messages []string
		for _, issue := range issues.Errors() {
			messages = append(messages, fmt.Sprintf("column %d: %s", issue.Location.Column()+1, issue.Message))
		}
		return nil, errors.New(strings.Join(messages, "; "))
	}
	if kind := ast.OutputType(); kind != cel.BoolType && kind != cel.DynType {
		return nil, fmt.Errorf("must return a bool, returns %s", kind)
	}
	return env.Program(ast, cel.CostLimit(costLimit), cel.InterruptCheckFrequency(interruptInterval), cel.EvalOptions(cel.OptOptimize))
}
