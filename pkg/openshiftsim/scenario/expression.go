// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

// expression is a compiled CEL expression over an object.
type expression struct{ program cel.Program }

// compile compiles a Boolean expression over "object" and "now".
func compile(text string) (expression, error) {
	env, err := cel.NewEnv(
		cel.Variable("object", cel.DynType),
		cel.Variable("now", cel.TimestampType),
		cel.OptionalTypes(),
		ext.Strings(),
	)
	if err != nil {
		return expression{}, fmt.Errorf("preparing CEL: %w", err)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return expression{}, issues.Err()
	}
	if ast.OutputType() != cel.BoolType && ast.OutputType() != cel.DynType {
		return expression{}, fmt.Errorf("it is of type %s", ast.OutputType())
	}
	program, err := env.Program(ast)
	if err != nil {
		return expression{}, err
	}
	return expression{program}, nil
}

// holds reports whether the expression is true for an object. It is false if the object lacks a
// field.
func (e expression) holds(object map[string]any, now time.Time) (bool, error) {
	value, _, err := e.program.Eval(map[string]any{"object": object, "now": now})
	if err != nil {
		if absent(err) {
			return false, nil
		}
		return false, err
	}
	holds, is := value.Value().(bool)
	if !is {
		return false, errors.New("it is neither true nor false")
	}
	return holds, nil
}

// absent reports whether an expression failed because a field or a list element is missing. CEL has
// no error type for this.
func absent(err error) bool {
	return strings.Contains(err.Error(), "no such key") || strings.Contains(err.Error(), "index out of bounds") ||
		strings.Contains(err.Error(), "no such overload")
}
