// A plugin of Lehr: keeps one line of text in a file. Replace `look` and `change` by what your production needs.
//
// Package lehrplugin speaks the protocol, and need not be changed; its file plugin.go describes what a plugin may have
// besides these.
package main

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	lehrplugin "lehr.dev/plugin"
	pb "lehr.dev/plugin/v1"
)

//go:embed types
var declarations embed.FS

func main() { lehrplugin.Main(lines{}) }

// lines is the plugin. It keeps nothing in memory: production is the state.
type lines struct{}

// line is what an asset contains.
type line struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

func (lines) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Name:    "line-plugin",
		Version: "0.1.0",
		Types:   lehrplugin.Types(declarations, "types/line-plugin.json"),
		Traits:  &pb.Traits{Goals: []pb.Goal{pb.Goal_GOAL_ABSENT}},
	}
}

// Diff is how production differs from intent; no changes if nothing needs doing. It only looks.
func (lines) Diff(_ context.Context, call *lehrplugin.Call) (*pb.Difference, error) {
	path, intended, err := wanted(call)
	if err != nil {
		return nil, err
	}
	observed, err := look(path)
	if err != nil || same(intended, observed) {
		return &pb.Difference{}, err
	}
	change := lehrplugin.Change("text", shown(intended), shown(observed))
	return &pb.Difference{Changes: []*pb.Change{change}}, nil
}

// Push moves production to intent. It may be repeated at any time, even after it was killed half-way.
func (lines) Push(ctx context.Context, push *lehrplugin.Push) (*pb.Outcome, error) {
	path, intended, err := wanted(push.Call)
	if err != nil {
		return nil, err
	}
	observed, err := look(path)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // it should stop, and nothing has changed yet
		return nil, ctx.Err()
	}
	if !same(intended, observed) {
		push.Progress("writing " + path)
		if err := change(path, intended); err != nil {
			return nil, err
		}
	}
	return lehrplugin.Done(), nil
}

// wanted is the path and its intended content; nil for none.
func wanted(call *lehrplugin.Call) (string, *string, error) {
	var asset line
	err := call.Payload(&asset)
	if err != nil || call.Target.Goal == pb.Goal_GOAL_ABSENT {
		return asset.Path, nil, err
	}
	content := asset.Text + "\n"
	return asset.Path, &content, nil
}

// look is the content of production; nil for none.
func look(path string) (*string, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, trouble(path, err)
	}
	text := string(content)
	return &text, nil
}

func change(path string, content *string) error {
	var err error
	if content != nil {
		err = lehrplugin.ReplaceFile(path, []byte(*content), 0o644) // a reader never sees half a line
	} else if err = os.Remove(path); err == nil {
		err = lehrplugin.SyncFolder(filepath.Dir(path))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return trouble(path, err)
	}
	return nil
}

// trouble names a problem: Stalled waits for a person or new intent; Transient is tried again.
func trouble(path string, err error) error {
	if info, missing := os.Stat(path); missing == nil && info.IsDir() {
		return lehrplugin.Stalled(path+" is a directory", "", "move it away")
	}
	return lehrplugin.Transient(path+" cannot be used", err.Error(), "check the folder and its permissions")
}

func same(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// shown is what a diff shows of a content. A diff is stored and shown: no secrets, and nothing long.
func shown(content *string) any {
	const most = 200
	if content == nil {
		return nil
	}
	if runes := []rune(*content); len(runes) > most {
		return string(runes[:most])
	}
	return *content
}
