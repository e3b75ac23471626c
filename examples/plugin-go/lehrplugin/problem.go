package lehrplugin

import (
	"errors"
	"strings"
	"time"

	pb "lehr.dev/plugin/v1"
)

// A Problem is an error that Lehr shows to people: what happened (one sentence without a full stop), the reason,
// and what the reader can do about it. It decides how Lehr goes on. None of its texts may hold a secret.
type Problem struct {
	kind           pb.Trouble_Kind
	What, Why, Fix string
	Code           string // stable, by which people can look the problem up; empty for none
	until          time.Time
}

// Stalled is for what a person or new intent must fix: trying again is useless.
func Stalled(what, why, fix string) error {
	return &Problem{kind: pb.Trouble_KIND_STALLED, What: what, Why: why, Fix: fix}
}

// Transient is for what may pass: Lehr tries again after growing delays.
func Transient(what, why, fix string) error {
	return &Problem{kind: pb.Trouble_KIND_TRANSIENT, What: what, Why: why, Fix: fix}
}

// Waiting is for what is not a failure, but not possible before a time either.
func Waiting(until time.Time, what, why string) error {
	return &Problem{kind: pb.Trouble_KIND_WAITING, What: what, Why: why, until: until}
}

// Fenced is for a push that comes too late: a newer one was here. Nothing may have been changed.
func Fenced(what, why string) error {
	return &Problem{kind: pb.Trouble_KIND_FENCED, What: what, Why: why}
}

// Coded gives a Problem a code.
func Coded(code string, err error) error {
	var problem *Problem
	if errors.As(err, &problem) {
		problem.Code = code
	}
	return err
}

func (p *Problem) Error() string {
	if p.Why == "" {
		return p.What
	}
	return p.What + ": " + p.Why
}

// asTrouble is the message for any error. One that is not a Problem may pass.
func asTrouble(err error, secrets []*pb.SecretValue) *pb.Trouble {
	var problem *Problem
	if !errors.As(err, &problem) {
		problem = &Problem{kind: pb.Trouble_KIND_TRANSIENT, What: err.Error()}
	}
	trouble := &pb.Trouble{
		Kind: problem.kind,
		Code: problem.Code,
		What: shown(problem.What, secrets),
		Why:  shown(problem.Why, secrets),
		Fix:  shown(problem.Fix, secrets),
	}
	if !problem.until.IsZero() {
		trouble.Until = seconds(problem.until)
	}
	return trouble
}

func seconds(at time.Time) float64 { return float64(at.UnixNano()) / 1e9 }

// shown is a text as one line, without the secrets that this call was given. Plugins should not put any there;
// an error of the operating system or of a library may.
func shown(text string, secrets []*pb.SecretValue) string {
	for _, secret := range secrets {
		if value := strings.TrimSpace(string(secret.Value)); value != "" {
			text = strings.ReplaceAll(text, value, "[secret]")
		}
	}
	return strings.Join(strings.Fields(text), " ")
}
