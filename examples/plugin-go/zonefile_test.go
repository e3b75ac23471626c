package main

import (
	"math/rand"
	"strings"
	"testing"
)

const byHand = `$ORIGIN Example.com.
$TTL 1h30m ; for records without their own
@	IN SOA ns1 hostmaster (
		4294967295 ; number of this version
		2h 15m 2w
		5m )
	IN NS	ns1.example.com.
	3600 IN TXT "two (texts);" " and \"quotes\" \226\130\172"
WWW	300	IN	A	192.0.2.1
	IN A 192.0.2.2
	IN AAAA 2001:db8::1
`

func parsed(t *testing.T, text string) *zoneFile {
	t.Helper()
	file, err := parseZone(text, "")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAFileStaysAsItWasWritten(t *testing.T) {
	if text := parsed(t, byHand).String(); text != byHand {
		t.Fatal(text)
	}
}

func TestRecordsAreFound(t *testing.T) {
	file := parsed(t, byHand)
	if file.origin != "example.com" || file.ttl != 5400 {
		t.Fatal(file.origin, file.ttl)
	}
	if found := headOf(file); found != (head{5400, "ns1.example.com. hostmaster.example.com.", "ns1.example.com."}) {
		t.Fatal(found)
	}
	if text := file.records("@", "TXT")[0].data; text != "two (texts); and \"quotes\" \xe2\x82\xac" {
		t.Fatalf("%q", text)
	}
	addresses := file.records("www", "A")
	if len(addresses) != 2 || !setOf(addresses).mixed || addresses[1].data != "192.0.2.2" {
		t.Fatal(addresses)
	}
}

func TestOtherRecordsKeepTheirNames(t *testing.T) {
	file := parsed(t, byHand)
	file.replace("www", "A", nil)
	file.replace("@", "SOA", nil)
	again := parsed(t, file.String())
	if len(again.records("www", "A"))+len(again.records("@", "SOA")) != 0 {
		t.Fatal(file)
	}
	if len(again.records("www", "AAAA")) != 1 || len(again.records("@", "NS")) != 1 || len(again.records("@", "TXT")) != 1 {
		t.Fatal("what inherited a name has it still:", file)
	}
}

func TestTheNumberGoesOnAfterTheHighest(t *testing.T) {
	file := parsed(t, byHand)
	for _, expected := range []uint32{1, 2} {
		file.count()
		if serial, ok := file.serial(); !ok || serial != expected {
			t.Fatal(serial, ok)
		}
	}
	if text := file.String(); text != strings.Replace(byHand, "4294967295", "2", 1) {
		t.Fatal("nothing else changes:", text)
	}
}

func TestAnyTextCanBeWritten(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for n := 0; n < 2000; n++ {
		text := make([]byte, random.Intn(20))
		random.Read(text)
		lines := recordSet{ttl: 60, values: []string{string(text)}}.lines("a", "TXT")
		found := setOf(parsed(t, lines[0]+"\n").records("a", "TXT"))
		if len(found.values) != 1 || found.values[0] != string(text) || found.ttl != 60 {
			t.Fatalf("%q became %q", text, found.values)
		}
	}
}

func TestWhatIsNoZoneIsRefusedByItsLine(t *testing.T) {
	for text, problem := range map[string]string{
		"a A 192.0.2.1\nb TXT \"open\n":              "line 2: a quote is not closed",
		"\n; nothing\n A 192.0.2.1\n":                "line 3: the first record has no name",
		"a TXT (\n\"b\"\n":                           "line 1: a parenthesis is not closed",
		"a IN A\n":                                   "line 1: a record has a name, a type and data",
		"@ SOA a b 1 2 3\n":                          "line 1: a SOA record has two names and five numbers",
		"$ORIGIN a.\n$ORIGIN b.\n":                   "line 2: names are relative to b from here on, and to a before",
		"a 99999999999999999999999999 A 192.0.2.1\n": "line 1: 99999999999999999999999999 seconds are too many",
		"$TTL 1\n$TTL 2\n":                           "line 2: $TTL is a number of seconds, once in a file",
	} {
		if _, err := parseZone(text, ""); err == nil || err.Error() != problem {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAValueCannotAddRecords(t *testing.T) {
	for _, test := range [][2]string{
		{"A", "192.0.2.1\nadmin A 203.0.113.1"}, {"A", "2001:db8::1"}, {"AAAA", "192.0.2.1"}, {"AAAA", "fe80::1%eth0"},
		{"CNAME", "a\nb A 192.0.2.1"}, {"CNAME", "a ; comment"}, {"MX", "10 (a"}, {"CNAME", ""}, {"A", ""},
		{"TXT", strings.Repeat("a", 256)},
	} {
		if _, err := (Record{Type: test[0]}).intended([]string{test[1]}); err == nil {
			t.Errorf("%s %q is refused", test[0], test[1])
		}
	}
}
