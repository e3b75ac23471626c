package main

import (
	"fmt"
	"sort"
	"strings"

	lehrplugin "lehr.dev/plugin"
)

const timers = "7200 900 1209600 300" // refresh, retry, expire, and how long a missing name is remembered

// head is what a zone asset declares of its file. The timers of the SOA record are left to people.
type head struct {
	ttl     uint32
	soa     string // primary name server and mailbox
	servers string // sorted
}

func wantedHead(zone Zone) head {
	servers := make([]string, len(zone.NameServers))
	for i, server := range zone.NameServers {
		servers[i] = server + "."
	}
	sort.Strings(servers)
	mailbox := strings.Replace(zone.Contact, "@", ".", 1)
	return head{zone.TTL, fmt.Sprintf("%s. %s.", zone.NameServers[0], mailbox), strings.Join(servers, " ")}
}

func headOf(file *zoneFile) head {
	found := head{ttl: file.ttl}
	if soa := file.records("@", "SOA"); len(soa) > 0 {
		fields := strings.Fields(soa[0].data)
		found.soa = file.absolute(fields[0]) + " " + file.absolute(fields[1])
	}
	var servers []string
	for _, each := range file.records("@", "NS") {
		servers = append(servers, file.absolute(each.data))
	}
	sort.Strings(servers)
	found.servers = strings.Join(servers, " ")
	return found
}

// newZoneFile is one with a head only. Its number is counted once more before it is written.
func newZoneFile(zone Zone) *zoneFile {
	want := wantedHead(zone)
	text := fmt.Sprintf("$ORIGIN %s.\n$TTL %d\n@ IN SOA %s 0 %s\n", zone.Origin, want.ttl, want.soa, timers)
	file, err := parseZone(text+strings.Join(nsLines(want), "\n"), zone.Origin)
	if err != nil {
		panic(err) // the schema allows only what can be written
	}
	return file
}

// putHead gives a file the head of its zone.
func putHead(zone Zone, file *zoneFile) (*zoneFile, error) {
	want := wantedHead(zone)
	soa := file.records("@", "SOA")[0]
	numbers := strings.Join(strings.Fields(soa.data)[2:], " ")
	file.replace("@", "SOA", []string{fmt.Sprintf("@ IN SOA %s %s", want.soa, numbers)})
	file.replace("@", "NS", nsLines(want))
	file.setTTL(want.ttl)
	return parseZone(file.String(), zone.Origin)
}

func nsLines(want head) []string {
	var lines []string
	for _, server := range strings.Fields(want.servers) {
		lines = append(lines, "@ IN NS "+server)
	}
	return lines
}

// setTTL changes the zone's default, or adds it in front.
func (z *zoneFile) setTTL(ttl uint32) {
	line := entry{text: fmt.Sprintf("$TTL %d\n", ttl), directive: "$TTL"}
	for i, each := range z.entries {
		if each.directive == "$TTL" {
			z.entries[i] = line
			return
		}
	}
	z.entries = append([]entry{line}, z.entries...)
}

// requireNoRecords reports records that would go with the file, and that nothing has turned down.
func requireNoRecords(zone Zone, file *zoneFile) error {
	for _, each := range file.entries {
		if each.kind != "" && !(each.name == "@" && (each.kind == "SOA" || each.kind == "NS")) {
			what := fmt.Sprintf("the zone %s still has records", zone.Origin)
			why := fmt.Sprintf("one of them is %s %s", each.name, each.kind)
			return lehrplugin.Stalled(what, why, "turn their assets down, or remove them by hand")
		}
	}
	return nil
}
