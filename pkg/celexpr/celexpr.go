// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package celexpr evaluates CEL expressions about Kubernetes objects. An expression has access to
// the variable object, as in a ValidatingAdmissionPolicy, and returns a bool. Its length and cost
// are limited.
//
// The environment is created only when the first expression is compiled, so processes without
// expressions need no memory for it.
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
	// MaxLength is the maximum length of an expression, in bytes.
	MaxLength = 1024
	// costLimit is the maximum cost of an evaluation. It equals the API server's limit for an
	// expression in an admission policy.
	costLimit = 1_000_000
	// interruptInterval is the number of iterations of a comprehension between checks of the context.
	interruptInterval = 100
	// maxCompiled is the maximum number of compiled expressions in the cache.
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

// program is a compiled expression, or the error if it is invalid.
type program struct {
	cel.Program

	err error
}

// Evaluator compiles and evaluates expressions. All evaluators share the same cache.
type Evaluator struct{}

// Compile returns an error if an expression is invalid.
func (Evaluator) Compile(expression string) error { return programOf(expression).err }

// Holds reports whether an expression is true for an object. It returns an error if this cannot be
// determined, for example because the object lacks a field that the expression reads.
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
