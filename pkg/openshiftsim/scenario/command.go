// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
)

// Command runs a command as an administrator would.
type Command struct {
	// Run is the command line, such as "oc update status". "oc update" runs kubectl-update, and all
	// other commands run kubectl. Virtual time supports only "oc update", "oc scale", and "oc patch".
	Run string `json:"run"`
	// ExitCode is the required exit code.
	ExitCode int `json:"exitCode,omitempty"`
	// Prints are regular expressions that must match the output. ^ and $ match at the beginning and
	// end of each line.
	Prints []string `json:"prints,omitempty"`
	// Lacks are regular expressions that must not match the output.
	Lacks []string `json:"lacks,omitempty"`
	// Within is how long the command is repeated until the result is as expected. By default, it runs
	// once.
	Within timescale.Duration `json:"within,omitempty"`
	// Follow also runs the commands that the output lists below "Do". They must succeed.
	Follow bool `json:"follow,omitempty"`
}

// CommandResult is the result of a command.
type CommandResult struct {
	// Printed is the combined standard output and standard error.
	Printed string
	// ExitCode is the exit code.
	ExitCode int
}

// A repeated command waits for commandInterval between two runs, or longer to limit the number of
// runs to maxCommands.
const (
	commandInterval = time.Second
	maxCommands     = 100
)

// runCommand runs a command until the result is as expected, and then the commands in its output.
func (r *Run) runCommand(ctx context.Context, wait func(time.Duration) bool, command Command) error {
	defer r.observations.setAwaited(command.Run, "")
	limit := r.world.Now().Add(time.Duration(command.Within))
	for {
		result, err := r.command(ctx, wait, command.Run)
		if err != nil {
			return err
		}
		err = command.compare(result)
		if err == nil {
			return r.follow(ctx, wait, command, result)
		}
		r.observations.setAwaited(command.Run, err.Error())
		if !r.world.Now().Before(limit) || !wait(max(commandInterval, time.Duration(command.Within)/maxCommands)) || ctx.Err() != nil {
			return err
		}
	}
}

func (r *Run) command(ctx context.Context, wait func(time.Duration) bool, line string) (CommandResult, error) {
	words, err := Words(line)
	if err != nil {
		return CommandResult{}, fmt.Errorf("%s: %w", line, err)
	}
	result, err := r.world.Command(ctx, wait, words)
	if err != nil {
		return CommandResult{}, fmt.Errorf("%s: %w", line, err)
	}
	return result, nil
}

// compare returns the differences between a result and the expected one.
func (c Command) compare(result CommandResult) error {
	var problems []string
	if result.ExitCode != c.ExitCode {
		problems = append(problems, fmt.Sprintf("exit code %d, want %d", result.ExitCode, c.ExitCode))
	}
	matches := func(pattern string) bool { return compilePattern(pattern).MatchString(result.Printed) }
	for _, pattern := range c.Prints {
		if !matches(pattern) {
			problems = append(problems, fmt.Sprintf("%q does not match", pattern))
		}
	}
	for _, pattern := range c.Lacks {
		if matches(pattern) {
			problems = append(problems, fmt.Sprintf("%q matches", pattern))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s; it printed:\n%s", c.Run, strings.Join(problems, "; "), result.Printed)
}

// compilePattern compiles a valid pattern.
func compilePattern(pattern string) *regexp.Regexp { return regexp.MustCompile("(?m)" + pattern) }

// follow runs the commands in a command's output if the scenario requires it.
func (r *Run) follow(ctx context.Context, wait func(time.Duration) bool, command Command, result CommandResult) error {
	if !command.Follow {
		return nil
	}
	printed := PrintedCommands(result.Printed)
	if len(printed) == 0 {
		return fmt.Errorf("%s: prints no command to follow:\n%s", command.Run, result.Printed)
	}
	for _, line := range printed {
		r.logf("  %s", line)
		result, err := r.command(ctx, wait, line)
		if err != nil {
			return err
		}
		if result.ExitCode != 0 {
			return fmt.Errorf("%s: exit code %d: %s", line, result.ExitCode, result.Printed)
		}
	}
	return nil
}

// PrintedCommands returns the commands that kubectl-update prints on separate lines.
func PrintedCommands(screen string) []string {
	var commands []string
	for line := range strings.Lines(screen) {
		if command := strings.TrimSpace(line); strings.HasPrefix(line, " ") && strings.HasPrefix(command, "oc ") {
			commands = append(commands, command)
		}
	}
	return commands
}

// Words splits a command line like a shell. It supports single and double quotes, but no variables,
// backslashes, or operators.
func Words(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	inWord := false
	for _, char := range line {
		switch {
		case quote != 0 && char == quote:
			quote = 0
		case quote == 0 && (char == '\'' || char == '"'):
			quote, inWord = char, true
		case quote == 0 && char == ' ':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(char)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

func (c Command) validate(path *field.Path) field.ErrorList {
	allErrs := c.Within.Validate(path.Child("within"))
	words, err := Words(c.Run)
	if err == nil && (len(words) < 2 || words[0] != "oc") {
		err = errors.New("must be a command of oc, such as oc update status")
	}
	if err != nil {
		allErrs = append(allErrs, field.Invalid(path.Child("run"), c.Run, err.Error()))
	}
	for name, patterns := range map[string][]string{"prints": c.Prints, "lacks": c.Lacks} {
		for i, pattern := range patterns {
			if _, err := regexp.Compile(pattern); err != nil {
				allErrs = append(allErrs, field.Invalid(path.Child(name).Index(i), pattern, "must be a regular expression: "+err.Error()))
			}
		}
	}
	return allErrs
}
