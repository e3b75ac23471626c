package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sort"
	"strings"

	lehrplugin "lehr.dev/plugin"
	pb "lehr.dev/plugin/v1"
)

// Discover drafts assets for the zones in files whose names match the query ("*.zone"), and for their records.
func (z *zones) Discover(_ context.Context, query []string, _ string, found func(*pb.Found)) error {
	names, err := z.matching(query)
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := readRegular(filepath.Join(z.folder, name))
		if err != nil {
			return err
		}
		file, err := parseZone(text, "")
		if err != nil {
			found(draft("zone/"+name, zoneType, map[string]any{"file": name}, err.Error()))
			continue
		}
		zone := "zone/" + file.origin
		found(draft(zone, zoneType, zonePayload(name, file), zoneObstacle(file)))
		for _, at := range placesOf(name, file) {
			id, payload, obstacle := recordDraft(zone, at, file)
			found(draft(id, recordType, payload, obstacle))
		}
	}
	return nil
}

func (z *zones) matching(query []string) ([]string, error) {
	found := map[string]bool{}
	for _, pattern := range query {
		paths, err := filepath.Glob(filepath.Join(z.folder, filepath.Base(pattern)))
		if err != nil {
			return nil, lehrplugin.Stalled(pattern+" is not a pattern of names", err.Error(), "write one like *.zone")
		}
		for _, path := range paths {
			if name := filepath.Base(path); !strings.HasPrefix(name, ".") {
				found[name] = true
			}
		}
	}
	var names []string
	for name := range found {
		names = append(names, name)
	}
	sort.Strings(names)
	return names, nil
}

func zonePayload(name string, file *zoneFile) map[string]any {
	payload := map[string]any{"file": name, "origin": file.origin, "ttl": file.ttl}
	head := headOf(file)
	if primary, mailbox, ok := strings.Cut(head.soa, " "); ok {
		payload["contact"] = strings.Replace(strings.TrimSuffix(mailbox, "."), ".", "@", 1)
		names := []string{strings.TrimSuffix(primary, ".")}
		for _, server := range strings.Fields(head.servers) {
			if server != primary {
				names = append(names, strings.TrimSuffix(server, "."))
			}
		}
		payload["name_servers"] = names
	}
	return payload
}

func zoneObstacle(file *zoneFile) string {
	head := headOf(file)
	primary, _, _ := strings.Cut(head.soa, " ")
	switch {
	case file.origin == "":
		return "the file has no $ORIGIN"
	case file.ttl == 0:
		return "the file has no $TTL"
	case primary == "":
		return "the file has no SOA record"
	case !strings.Contains(" "+head.servers+" ", " "+primary+" "):
		return "the primary name server has no NS record"
	}
	return ""
}

// placesOf are the places of a file's records without those of its head, in order.
func placesOf(name string, file *zoneFile) []place {
	var places []place
	seen := map[place]bool{}
	for _, each := range file.entries {
		at := place{name, each.name, each.kind}
		head := each.name == "@" && (each.kind == "SOA" || each.kind == "NS")
		if each.kind != "" && !head && !seen[at] {
			seen[at] = true
			places = append(places, at)
		}
	}
	return places
}

func recordDraft(zone string, at place, file *zoneFile) (id string, payload map[string]any, obstacle string) {
	set := setOf(file.records(at.name, at.kind))
	record := Record{Zone: zone, Name: at.name, Type: at.kind, TTL: set.ttl, Values: set.values}
	payload = map[string]any{"zone": zone, "name": at.name, "type": at.kind, "values": set.values}
	if set.ttl > 0 {
		payload["ttl"] = set.ttl
	}
	if !managed[at.kind] {
		obstacle = "records of type " + at.kind + " cannot be declared"
	} else if _, err := record.intended(set.values); err != nil {
		obstacle = err.Error()
	} else if set.mixed {
		obstacle = "these records have several times to live"
	} else if file.origin == "" {
		obstacle = zoneObstacle(file)
	}
	name := strings.NewReplacer("*", "any", "@", "").Replace(at.name)
	return "record/" + strings.TrimPrefix(name+"."+strings.TrimPrefix(zone, "zone/"), ".") + "/" + at.kind, payload, obstacle
}

func draft(id, kind string, payload map[string]any, obstacle string) *pb.Found {
	text, err := json.Marshal(payload)
	if err != nil {
		panic(err) // texts and numbers only
	}
	return &pb.Found{Id: id, Type: kind, Payload: text, Obstacle: obstacle}
}
