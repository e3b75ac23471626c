package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	lehrplugin "lehr.dev/plugin"
	pb "lehr.dev/plugin/v1"
)

var zone = Zone{
	File: "example.com.zone", Origin: "example.com", NameServers: []string{"ns1.example.com"},
	Contact: "hostmaster@example.com", TTL: 3600,
}

func want(name string, values ...string) intent {
	record := &Record{Zone: "zone", Name: name, Type: "A", Values: values}
	set, err := record.intended(values)
	if err != nil {
		panic(err)
	}
	return intent{zone: zone, record: record, set: set}
}

// pushed writes what is wanted, as one of several processes.
func pushed(folder, name string, wanted intent) error {
	plugin := newZones(folder)
	operation := &pb.Operation{Id: name, Epoch: 1, Partition: "web", Asset: name}
	return plugin.fence.Commit(context.Background(), operation, func() error {
		file, err := plugin.read(zone)
		if err != nil {
			return err
		}
		changed, err := edited(wanted, file)
		if err != nil || changed == nil {
			return err
		}
		return plugin.write(zone, changed)
	})
}

func TestPushesAtOnceUndoNothing(t *testing.T) {
	const writers = 40
	folder := t.TempDir()
	var group sync.WaitGroup
	for n := 0; n < writers; n++ {
		name := fmt.Sprint("host", n)
		group.Add(1)
		go func() {
			defer group.Done()
			if err := pushed(folder, name, want(name, "192.0.2.1")); err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	file, err := newZones(folder).read(zone)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < writers; n++ {
		if len(file.records(fmt.Sprint("host", n), "A")) != 1 {
			t.Error("lost:", n)
		}
	}
	if serial, _ := file.serial(); serial != writers {
		t.Error("each version has a number:", serial)
	}
}

func TestAFolderThatIsNotMountedIsNotMade(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "mount")
	var problem *lehrplugin.Problem
	if err := pushed(folder, "www", want("www", "192.0.2.1")); !errors.As(err, &problem) {
		t.Fatal(err)
	}
	if _, err := newZones(folder).read(zone); !errors.As(err, &problem) || problem.What != "there is no folder "+folder {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("it is still missing:", err)
	}
}

func TestAZoneWithRecordsIsNotRemoved(t *testing.T) {
	file := newZoneFile(zone)
	if err := requireNoRecords(zone, file); err != nil {
		t.Fatal(err)
	}
	file.replace("www", "A", []string{"www IN A 192.0.2.1"})
	if err := requireNoRecords(zone, file); err == nil {
		t.Fatal("www would be lost")
	}
}

func TestTextsAreNotShown(t *testing.T) {
	record := &Record{Zone: "zone", Name: "@", Type: "TXT"}
	file := newZoneFile(zone)
	file.replace("@", "TXT", recordSet{values: []string{"hunter2"}}.lines("@", "TXT"))
	file = parsed(t, file.String())
	changes := difference(intent{zone: zone, record: record, set: recordSet{values: []string{"other22"}}}, file).Changes
	if len(changes) != 1 || string(changes[0].Intended) != `"1 texts"` || string(changes[0].Observed) != `"1 texts, others"` {
		t.Fatal(changes)
	}
}

func TestDraftsAreSound(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.zone"), []byte(byHand), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "b.zone"), []byte("no zone\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	found := map[string]*pb.Found{}
	err := newZones(folder).Discover(context.Background(), []string{"*.zone"}, "web", func(draft *pb.Found) {
		found[draft.Id] = draft
	})
	if err != nil || len(found) != 5 || found["zone/b.zone"].Obstacle == "" {
		t.Fatal(err, found)
	}
	var payload Zone
	if err := json.Unmarshal(found["zone/example.com"].Payload, &payload); err != nil {
		t.Fatal(err)
	}
	if wantedHead(payload) != headOf(parsed(t, byHand)) || found["zone/example.com"].Obstacle != "" {
		t.Fatal(payload)
	}
	if record := found["record/www.example.com/A"]; record == nil || record.Obstacle == "" {
		t.Fatal("two records of one name and type have different times:", record)
	}
}
