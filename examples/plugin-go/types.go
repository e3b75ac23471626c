package main

import (
	"embed"
	"fmt"
	"net/netip"
	"regexp"
	"sort"
	"strings"

	lehrplugin "lehr.dev/plugin"
	pb "lehr.dev/plugin/v1"
)

const (
	zoneType   = "example.Zone"
	recordType = "example.Record"
)

// Zone is the payload of example.Zone.
type Zone struct {
	File        string   `json:"file"`
	Origin      string   `json:"origin"`
	NameServers []string `json:"name_servers"`
	Contact     string   `json:"contact"`
	TTL         uint32   `json:"ttl"`
}

// Record is the payload of example.Record.
type Record struct {
	Zone   string   `json:"zone"`
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Values []string `json:"values,omitempty"`
	Secret *Secret  `json:"secret,omitempty"`
	TTL    uint32   `json:"ttl,omitempty"`
}

// Secret names where a secret is kept.
type Secret struct {
	Reference string `json:"secret"`
}

// managed are the types of records that can be declared.
var managed = map[string]bool{
	"A": true, "AAAA": true, "CAA": true, "CNAME": true, "MX": true, "SRV": true, "TXT": true,
}

//go:embed types
var declarations embed.FS

// types are declared in files, which also workspaces need.
var types = func() []*pb.AssetType {
	declared := lehrplugin.Types(declarations, "types/zone.json", "types/record.json")
	declared[0].ChangingOutputs = []string{"serial"}
	return declared
}()

// recordSet is what the records of one name and type have in them.
type recordSet struct {
	ttl    uint32
	values []string // sorted
	mixed  bool     // they have several ttls, of which this is one: resolvers do not accept that
}

func (r recordSet) equals(other recordSet) bool { return r.sameTTL(other) && r.sameValues(other) }

func (r recordSet) sameTTL(other recordSet) bool { return r.ttl == other.ttl && r.mixed == other.mixed }

func (r recordSet) sameValues(other recordSet) bool {
	return strings.Join(r.values, "\n") == strings.Join(other.values, "\n")
}

// lines are the records as they are written.
func (r recordSet) lines(name, kind string) []string {
	lines := make([]string, len(r.values))
	for i, value := range r.values {
		if kind == "TXT" {
			value = quoted(value)
		}
		if r.ttl > 0 {
			lines[i] = fmt.Sprintf("%s %d IN %s %s", name, r.ttl, kind, value)
		} else {
			lines[i] = fmt.Sprintf("%s IN %s %s", name, kind, value)
		}
	}
	return lines
}

// setOf is what a zone file has.
func setOf(entries []entry) recordSet {
	var found recordSet
	for i, each := range entries {
		found.mixed = found.mixed || i > 0 && each.ttl != found.ttl
		found.ttl = each.ttl
		found.values = append(found.values, each.data)
	}
	sort.Strings(found.values)
	return found
}

var plainData = regexp.MustCompile(`^[A-Za-z0-9_.*@-]+( [A-Za-z0-9_.:"/-]+){0,3}$`)

// intended is what a zone file should have. A value must not end its line, or it could add records of other names.
func (r Record) intended(values []string) (recordSet, error) {
	if len(values) == 0 {
		return recordSet{}, lehrplugin.Stalled("the record has no values", "", "declare values, or turn it down")
	}
	sorted := append([]string{}, values...)
	sort.Strings(sorted)
	for i, value := range sorted {
		ok := true
		switch r.Type {
		case "A", "AAAA":
			address, err := netip.ParseAddr(value)
			ok = err == nil && address.Zone() == "" && address.Is4() == (r.Type == "A")
		case "TXT":
			ok = len(value) <= 255
		default:
			ok = plainData.MatchString(value)
		}
		if !ok {
			why := fmt.Sprintf("it is not the data of a record of type %s", r.Type)
			return recordSet{}, lehrplugin.Stalled(fmt.Sprintf("value %d cannot be written", i+1), why, "correct it")
		}
	}
	return recordSet{ttl: r.TTL, values: sorted}, nil
}
