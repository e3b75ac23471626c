// Zones keeps the records of DNS zone files as intent declares them. Name servers such as BIND, NSD and Knot read them.
//
// It is an example of a plugin of Lehr in Go. Read it from top to bottom; package lehrplugin does the rest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	lehrplugin "lehr.dev/plugin"
	pb "lehr.dev/plugin/v1"
)

const version = "1.0.0"

func main() {
	address := flag.String("listen", "", "serve at this HOST:PORT, with a life cycle of its own")
	certificates := flag.String("certificates", "", "folder with tls.crt, tls.key and ca.crt, for -listen")
	flag.Parse()
	plugin := newZones(".")
	if flag.NArg() > 0 {
		plugin = newZones(flag.Arg(0))
	}
	if *address == "" {
		lehrplugin.Main(plugin)
	} else if err := lehrplugin.Listen(plugin, *address, *certificates); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// zones is the plugin. Production is the zone files in one folder; nothing outside is ever touched.
type zones struct {
	folder string
	fence  *lehrplugin.Fence

	mutex sync.Mutex
	keys  map[place]lehrplugin.Key // what was compared, for hints
}

// place is where the records of an asset are. Those of a zone have the name "@" and the type "SOA".
type place struct{ file, name, kind string }

func newZones(folder string) *zones {
	// Next to what it protects, so that all processes that write these files share it.
	fence := lehrplugin.NewFence(filepath.Join(folder, ".lehr"))
	return &zones{folder: folder, fence: fence, keys: map[place]lehrplugin.Key{}}
}

func (z *zones) Describe() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		Name:    "zones",
		Version: version,
		Types:   types,
		Traits:  &pb.Traits{Goals: []pb.Goal{pb.Goal_GOAL_ABSENT}, DiffTimeout: 10, PushTimeout: 30},
	}
}

// Fence keeps late writers out: an old address of a service that has moved must not come back.
func (z *zones) Fence() *lehrplugin.Fence { return z.fence }

// Diff compares one asset with its zone file, which is read once for all diffs of a batch.
func (z *zones) Diff(_ context.Context, call *lehrplugin.Call) (*pb.Difference, error) {
	want, err := z.intent(call)
	if err != nil {
		return nil, err
	}
	z.remember(call.Target, want.place())
	file, err := lehrplugin.Shared(call, want.zone.File, func() (*zoneFile, error) { return z.read(want.zone) })
	if err != nil {
		return nil, err
	}
	return difference(want, file), nil
}

// Push looks again, and replaces the file in one step: a name server never reads half of it. Several assets live in
// one file, and several pushes run at once, also in other processes. The fence's lock is around reading and writing, so
// none of them undoes what another has done.
func (z *zones) Push(ctx context.Context, push *lehrplugin.Push) (*pb.Outcome, error) {
	want, err := z.intent(push.Call)
	if err != nil {
		return nil, err
	}
	push.Progress("waiting for the lock")
	err = z.fence.Commit(ctx, push.Operation, func() error {
		file, err := z.read(want.zone)
		switch {
		case err != nil || file == nil && want.absent:
			return err
		case want.record == nil && want.absent:
			return z.remove(want.zone, file)
		}
		changed, err := edited(want, file)
		if err != nil || changed == nil {
			return err
		}
		push.Progress("writing " + want.zone.File)
		return z.write(want.zone, changed)
	})
	if err != nil {
		return nil, err
	}
	return lehrplugin.Done(), nil
}

// intent is what a call wants.
type intent struct {
	zone   Zone
	record *Record // nil for the zone's own asset
	absent bool
	set    recordSet // what the records should be; none if absent
}

func (i intent) place() place {
	if i.record == nil {
		return place{i.zone.File, "@", "SOA"}
	}
	return place{i.zone.File, i.record.Name, i.record.Type}
}

func (z *zones) intent(call *lehrplugin.Call) (intent, error) {
	want := intent{absent: call.Target.Goal == pb.Goal_GOAL_ABSENT}
	if call.Target.Type == zoneType {
		return want, call.Payload(&want.zone)
	}
	want.record = &Record{}
	if err := call.Payload(want.record); err != nil {
		return want, err
	}
	// Until Lehr has sent the zone along, this is an error by which Lehr notices that it should.
	if _, err := call.PayloadOf(want.record.Zone, zoneType, &want.zone); err != nil || want.absent {
		return want, err
	}
	values := want.record.Values
	if want.record.Secret != nil {
		value, err := call.Secret(want.record.Secret.Reference)
		if err != nil {
			return want, err
		}
		values = []string{string(value)}
	}
	var err error
	want.set, err = want.record.intended(values)
	return want, err
}

// difference compares; `file` is nil if there is none.
func difference(want intent, file *zoneFile) *pb.Difference {
	if want.record == nil {
		return zoneDifference(want, file)
	}
	return recordDifference(want, file)
}

func zoneDifference(want intent, file *zoneFile) *pb.Difference {
	difference := &pb.Difference{Effects: &pb.Effects{}, Outputs: lehrplugin.Outputs(nil)}
	if file == nil {
		if !want.absent {
			difference.Changes = []*pb.Change{lehrplugin.Change("file", "present", nil)}
		}
		return difference
	}
	if serial, ok := file.serial(); ok {
		difference.Outputs = lehrplugin.Outputs(map[string]any{"serial": serial})
	}
	if want.absent {
		difference.Changes = []*pb.Change{lehrplugin.Change("file", nil, "present")}
		difference.Effects.Destructive = true // it may have records that nothing declares
		return difference
	}
	intended, observed := wantedHead(want.zone), headOf(file)
	for _, part := range []struct {
		path               string
		intended, observed any
	}{
		{"ttl", intended.ttl, observed.ttl},
		{"soa", intended.soa, observed.soa},
		{"name_servers", intended.servers, observed.servers},
	} {
		if part.intended != part.observed {
			change := lehrplugin.Change(part.path, part.intended, part.observed)
			difference.Changes = append(difference.Changes, change)
		}
	}
	return difference
}

func recordDifference(want intent, file *zoneFile) *pb.Difference {
	difference := &pb.Difference{}
	var observed recordSet
	if file != nil {
		observed = setOf(file.records(want.record.Name, want.record.Type))
	}
	intended, found := shownValues(want.record, want.set), shownValues(want.record, observed)
	if !want.set.sameValues(observed) {
		if want.record.Type == "TXT" && intended != nil && found != nil {
			found = fmt.Sprintf("%v, others", found)
		}
		difference.Changes = append(difference.Changes, lehrplugin.Change("values", intended, found))
	}
	if !want.set.sameTTL(observed) {
		difference.Changes = append(difference.Changes, lehrplugin.Change("ttl", shownTTL(want.set), shownTTL(observed)))
	}
	return difference
}

// shownValues are values as a diff has them. Texts may be secrets, now or before, so only their number is shown.
func shownValues(record *Record, set recordSet) any {
	switch {
	case len(set.values) == 0:
		return nil
	case record.Type == "TXT":
		return fmt.Sprintf("%d texts", len(set.values))
	}
	return set.values
}

func shownTTL(set recordSet) any {
	switch {
	case len(set.values) == 0:
		return nil
	case set.mixed:
		return "several"
	case set.ttl == 0:
		return "the zone's"
	}
	return set.ttl
}

// edited is the zone file as it should be; nil if it is already.
func edited(want intent, file *zoneFile) (*zoneFile, error) {
	if file == nil {
		file = newZoneFile(want.zone)
	} else if _, ok := file.serial(); !ok {
		fix := "add one, or remove the file: then it is made again"
		return nil, lehrplugin.Stalled(want.zone.File+" has no SOA record", "it is no zone without one", fix)
	} else if len(difference(want, file).Changes) == 0 {
		return nil, nil
	}
	if want.record == nil {
		changed, err := putHead(want.zone, file)
		if err != nil {
			return nil, err
		}
		file = changed
	} else {
		file.replace(want.record.Name, want.record.Type, want.set.lines(want.record.Name, want.record.Type))
	}
	file.count()
	return file, nil
}

func (z *zones) path(zone Zone) string { return filepath.Join(z.folder, zone.File) }

// read is the zone's file; nil if there is none.
func (z *zones) read(zone Zone) (*zoneFile, error) {
	path := z.path(zone)
	text, err := readRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Stat(z.folder); missing == nil {
			return nil, nil
		}
		fix := "make the folder, or mount what should hold it"
		return nil, lehrplugin.Stalled("there is no folder "+z.folder, "the zone files should be there", fix)
	}
	if err != nil {
		return nil, err
	}
	file, err := parseZone(text, zone.Origin)
	if err != nil {
		return nil, lehrplugin.Stalled(path+" cannot be understood", err.Error(), "correct it by hand")
	}
	return file, nil
}

func readRegular(path string) (string, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return "", lehrplugin.Stalled(path+" is not a file", "it is "+info.Mode().Type().String(), "remove it by hand")
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = lehrplugin.Transient(path+" cannot be read", err.Error(), "check its permissions")
	}
	return string(text), err
}

func (z *zones) write(zone Zone, file *zoneFile) error {
	path, mode := z.path(zone), fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := lehrplugin.ReplaceFile(path, []byte(file.String()), mode); err != nil {
		return lehrplugin.Transient(path+" cannot be written", err.Error(), "check free space and permissions")
	}
	return nil
}

func (z *zones) remove(zone Zone, file *zoneFile) error {
	if err := requireNoRecords(zone, file); err != nil {
		return err
	}
	err := os.Remove(z.path(zone))
	if err == nil {
		err = lehrplugin.SyncFolder(z.folder)
	}
	if err != nil {
		return lehrplugin.Transient(z.path(zone)+" cannot be removed", err.Error(), "check the folder's permissions")
	}
	return nil
}
