// Package lehrplugin serves a plugin of Lehr: everything of the protocol lehr.plugin.v1 that is the same for all plugins.
//
// A plugin implements Plugin, and where it can do more, Watcher, Discoverer or Fencer, and calls Main:
//
//	func main() { lehrplugin.Main(&links{}) }
//
// The package starts and ends the program as Lehr expects, asks for intent that a call lacks, knows which pushes are
// under way, cancels them, refuses those that come too late, compares many assets at once, and hides the secrets of
// a call in its messages.
package lehrplugin

//go:generate protoc -I v1 --go_out=. --go_opt=module=lehr.dev/plugin --go-grpc_out=. --go-grpc_opt=module=lehr.dev/plugin plugin.proto

import (
	"context"

	pb "lehr.dev/plugin/v1"
)

// A Plugin knows the production of some types of assets.
//
// It keeps no state that matters: production is the state. Several calls run at once.
type Plugin interface {
	// Describe returns what the plugin is: name, version, types and traits. What it implements beyond this interface
	// the package adds.
	Describe() *pb.DescribeResponse

	// Diff returns how production differs from intent. It only looks, and called twice with nothing changed it returns
	// the same.
	Diff(ctx context.Context, call *Call) (*pb.Difference, error)

	// Push moves production to intent. It looks again, since time has passed, and may be repeated at any time. An error
	// that is not a Problem leaves the outcome unknown: nothing is touched before Diff has looked.
	Push(ctx context.Context, push *Push) (*pb.Outcome, error)
}

// A Watcher notices when production may have changed.
type Watcher interface {
	// Watch calls hint until ctx ends. Hints may be missing, repeated or wrong. One without an id means that
	// anything may have changed.
	Watch(ctx context.Context, hint func(Key)) error
}

// A Discoverer drafts assets for what production already holds.
type Discoverer interface {
	// Discover calls found for each draft. It only looks.
	Discover(ctx context.Context, query []string, partition string, found func(*pb.Found)) error
}

// A Fencer has a fence, which its pushes commit through. The package notes there which operations have ended.
type Fencer interface {
	Fence() *Fence
}

// Key names an asset.
type Key struct{ Partition, ID string }
