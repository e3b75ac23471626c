package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	lehrplugin "lehr.dev/plugin"
	pb "lehr.dev/plugin/v1"
)

const watchInterval = 500 * time.Millisecond

func (z *zones) remember(target *pb.Target, at place) {
	z.mutex.Lock()
	defer z.mutex.Unlock()
	z.keys[at] = lehrplugin.Key{Partition: target.Partition, ID: target.Id}
}

// Watch hints at the records that have changed in files which have; the head of a zone counts as one. A process that
// has compared nothing yet has nothing to hint at: Lehr compares everything when it starts.
func (z *zones) Watch(ctx context.Context, hint func(lehrplugin.Key)) error {
	files := map[string]map[place]string{}
	stamps := map[string]string{}
	for {
		for name := range z.watched() {
			stamp, found := stampOf(filepath.Join(z.folder, name)), map[place]string{}
			before, known := files[name]
			if known && stamp == stamps[name] {
				continue
			}
			if text, err := readRegular(filepath.Join(z.folder, name)); err == nil {
				found = contentOf(name, text)
			}
			files[name], stamps[name] = found, stamp
			for _, key := range z.changed(name, before, found) {
				if known {
					hint(key)
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchInterval):
		}
	}
}

// watched are the files in which something was compared.
func (z *zones) watched() map[string]bool {
	z.mutex.Lock()
	defer z.mutex.Unlock()
	names := map[string]bool{}
	for at := range z.keys {
		names[at.file] = true
	}
	return names
}

// changed are the keys of what differs between two states of a file.
func (z *zones) changed(file string, before, after map[place]string) []lehrplugin.Key {
	z.mutex.Lock()
	defer z.mutex.Unlock()
	var keys []lehrplugin.Key
	for at, key := range z.keys {
		if at.file == file && before[at] != after[at] {
			keys = append(keys, key)
		}
	}
	return keys
}

// stampOf is different after each change of a file, which is replaced or written.
func stampOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	inode := uint64(0)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size(), inode)
}

// contentOf is what a file has at each place; nothing if it cannot be understood.
func contentOf(name, text string) map[place]string {
	found := map[place]string{}
	file, err := parseZone(text, "")
	if err != nil {
		return found
	}
	found[place{name, "@", "SOA"}] = fmt.Sprint(headOf(file))
	for _, each := range file.entries {
		if each.kind != "" && each.kind != "SOA" {
			found[place{name, each.name, each.kind}] += fmt.Sprintln(each.ttl, each.data)
		}
	}
	return found
}
