package lehrplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	pb "lehr.dev/plugin/v1"
)

// A Fence keeps late writers out.
//
// Another machine, or another process, may have taken Lehr's work over while this one was stopped. When it continues, a
// push of the past may still be on its way. So the fence remembers, for each asset, the highest epoch (number of the
// lease) that has pushed it, and refuses older ones. It also refuses operations that Status has called ended: who heard
// that relies on it.
//
// The memory is a file in a folder that all plugin processes share which write to the same production. It is read and
// written under a lock, together with production, so nothing can come in between.
type Fence struct {
	folder string
}

const (
	lockInterval = 5 * time.Millisecond
	mostEnded    = 100
)

// NewFence uses `folder`, which it makes when it first writes.
func NewFence(folder string) *Fence { return &Fence{folder} }

type fenced struct {
	Epoch uint64   `json:"epoch"`
	Ended []string `json:"ended,omitempty"` // operations of this epoch, oldest first
}

// Commit runs `write`, which changes production in one short step, unless the push comes too late.
func (f *Fence) Commit(ctx context.Context, operation *pb.Operation, write func() error) error {
	return f.locked(ctx, func() error {
		seen, err := f.read(operation)
		if err != nil {
			return err
		}
		if operation.Epoch < seen.Epoch {
			why := fmt.Sprintf("it belongs to lease %d, and lease %d has pushed this asset", operation.Epoch, seen.Epoch)
			return Fenced("the push came too late", why)
		}
		for _, id := range seen.Ended {
			if id == operation.Id {
				return Fenced("the push came too late", "it was looked for before, and counts as ended")
			}
		}
		if operation.Epoch > seen.Epoch {
			// Before production: if the machine stops in between, nothing but an older push is lost.
			if err := f.write(operation, fenced{Epoch: operation.Epoch}); err != nil {
				return err
			}
		}
		return write()
	})
}

// End notes that an operation has ended: it changes nothing any more, in no process.
func (f *Fence) End(ctx context.Context, operation *pb.Operation) error {
	return f.locked(ctx, func() error {
		seen, err := f.read(operation)
		if err != nil || operation.Epoch < seen.Epoch {
			return err // one of an older lease is refused anyway
		}
		for _, id := range seen.Ended {
			if id == operation.Id {
				return nil
			}
		}
		if operation.Epoch > seen.Epoch {
			seen = fenced{Epoch: operation.Epoch}
		}
		seen.Ended = append(seen.Ended, operation.Id)
		if over := len(seen.Ended) - mostEnded; over > 0 {
			seen.Ended = seen.Ended[over:]
		}
		return f.write(operation, seen)
	})
}

func (f *Fence) locked(ctx context.Context, do func() error) error {
	// Its parent is there, or what should hold production (a disk, a share) is not mounted.
	if err := os.Mkdir(f.folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return Transient("the folder of epochs cannot be made", err.Error(), "check its permissions, and free space")
	}
	file, err := os.OpenFile(filepath.Join(f.folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return Transient("the lock of epochs cannot be opened", err.Error(), "check the permissions of its folder")
	}
	defer file.Close() // which unlocks it
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return do()
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return Transient("the lock of epochs cannot be taken", err.Error(), "check its file system")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockInterval):
		}
	}
}

func (f *Fence) path(operation *pb.Operation) string {
	// Ids have slashes and may be long; a digest of both is a name.
	return filepath.Join(f.folder, digest(operation.Partition+"\x00"+operation.Asset)+".json")
}

func (f *Fence) read(operation *pb.Operation) (fenced, error) {
	var seen fenced
	text, err := os.ReadFile(f.path(operation))
	if errors.Is(err, fs.ErrNotExist) {
		return seen, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &seen)
	}
	if err != nil {
		// Without it, a late writer could not be told from others.
		fix := "if no other Lehr pushes this asset, delete " + f.path(operation)
		return seen, Stalled("the epoch of "+operation.Asset+" cannot be read", err.Error(), fix)
	}
	return seen, nil
}

func (f *Fence) write(operation *pb.Operation, seen fenced) error {
	text, err := json.Marshal(seen)
	if err == nil {
		err = ReplaceFile(f.path(operation), text, 0o600)
	}
	if err != nil {
		return Transient("the epoch of "+operation.Asset+" cannot be kept", err.Error(), "check free space and permissions")
	}
	return nil
}
