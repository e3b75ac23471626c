package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// zoneFile is a zone file as RFC 1035 describes it: entries, each with its text, so that whatever is not changed stays
// as a person wrote it, comments included.
type zoneFile struct {
	origin  string // without a final dot, lower case; empty if the file does not name it
	ttl     uint32 // $TTL, for records without their own; 0 for none
	entries []entry
}

// entry is a record, or something else (a comment, a directive), in which only the text is set.
type entry struct {
	text      string // with its line break
	name      string // relative to the origin, lower case; "@" for the origin's own
	inherited bool   // the text does not have the name: it is that of the record before
	ttl       uint32 // 0 for the zone's
	kind      string // "A"
	data      string // the same for the same, whatever the spelling; of TXT the text without quotes
	directive string // "$TTL"
	serial    [2]int // of SOA: where in the text its serial number is
}

type token struct {
	text       string
	start, end int
	quoted     bool
}

var (
	aTTL   = regexp.MustCompile(`^([0-9]+[smhdwSMHDW]?)+$`)
	aClass = regexp.MustCompile(`^(?i:IN|CH|HS|CS)$`)
)

// parseZone reads a zone file. `origin` is that of records before a $ORIGIN; empty if it is not known.
func parseZone(text, origin string) (*zoneFile, error) {
	zone := &zoneFile{origin: origin}
	last := ""
	for line := 1; text != ""; {
		tokens, length, err := tokenize(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		found, err := zone.parseEntry(text[:length], tokens, last)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if found.kind != "" {
			last = found.name
		}
		zone.entries = append(zone.entries, found)
		line += strings.Count(text[:length], "\n")
		text = text[length:]
	}
	return zone, nil
}

// tokenize splits the first entry of a text: one line, or several in parentheses. It returns how long it is.
func tokenize(text string) (tokens []token, length int, err error) {
	depth := 0
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case c == '\n' && depth == 0:
			return tokens, at + 1, nil
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			at++
		case c == '(':
			depth, at = depth+1, at+1
		case c == ')':
			depth, at = depth-1, at+1
		case c == ';':
			for at < len(text) && text[at] != '\n' {
				at++
			}
		case c == '"':
			value, end, err := unquoted(text, at+1)
			if err != nil {
				return nil, 0, err
			}
			tokens, at = append(tokens, token{value, at, end, true}), end
		default:
			end := at
			for end < len(text) && !strings.ContainsRune(" \t\r\n();\"", rune(text[end])) {
				if text[end] == '\\' && end+1 < len(text) {
					end++
				}
				end++
			}
			tokens, at = append(tokens, token{text[at:end], at, end, false}), end
		}
	}
	if depth != 0 {
		return nil, 0, fmt.Errorf("a parenthesis is not closed")
	}
	return tokens, len(text), nil
}

// unquoted is the text that ends with a quote, and where it ends.
func unquoted(text string, at int) (string, int, error) {
	var value strings.Builder
	for ; at < len(text) && text[at] != '\n'; at++ {
		switch {
		case text[at] == '"':
			return value.String(), at + 1, nil
		case text[at] == '\\' && at+3 < len(text) && isNumber(text[at+1:at+4]):
			code, err := strconv.ParseUint(text[at+1:at+4], 10, 8)
			if err != nil {
				return "", 0, fmt.Errorf("there is no byte %s", text[at+1:at+4])
			}
			value.WriteByte(byte(code))
			at += 3
		case text[at] == '\\' && at+1 < len(text):
			at++
			value.WriteByte(text[at])
		default:
			value.WriteByte(text[at])
		}
	}
	return "", 0, fmt.Errorf("a quote is not closed")
}

func quoted(text string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, c := range []byte(text) {
		switch {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&out, `\%03d`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// parseEntry understands one entry, and what directives say to those after it.
func (z *zoneFile) parseEntry(text string, tokens []token, last string) (entry, error) {
	found := entry{text: text}
	if len(tokens) == 0 {
		return found, nil
	}
	if strings.HasPrefix(tokens[0].text, "$") {
		found.directive = strings.ToUpper(tokens[0].text)
		return found, z.parseDirective(found.directive, tokens)
	}
	if tokens[0].start > 0 && strings.TrimLeft(text[:tokens[0].start], " \t") == "" {
		if last == "" {
			return found, fmt.Errorf("the first record has no name")
		}
		found.name, found.inherited = last, true
	} else {
		found.name = z.relative(tokens[0].text)
		tokens = tokens[1:]
	}
	for len(tokens) > 0 && (aTTL.MatchString(tokens[0].text) || aClass.MatchString(tokens[0].text)) {
		if aTTL.MatchString(tokens[0].text) {
			ttl, err := parseTTL(tokens[0].text)
			if err != nil {
				return found, err
			}
			found.ttl = ttl
		}
		tokens = tokens[1:]
	}
	if len(tokens) < 2 {
		return found, fmt.Errorf("a record has a name, a type and data")
	}
	found.kind = strings.ToUpper(tokens[0].text)
	return found, found.parseData(tokens[1:])
}

func (e *entry) parseData(tokens []token) error {
	if e.kind == "SOA" {
		if len(tokens) != 7 || !isNumber(tokens[2].text) {
			return fmt.Errorf("a SOA record has two names and five numbers")
		}
		e.serial = [2]int{tokens[2].start, tokens[2].end}
	}
	separator := " "
	if e.kind == "TXT" {
		separator = "" // a long text consists of several
	}
	parts := make([]string, len(tokens))
	for i, each := range tokens {
		parts[i] = each.text
	}
	e.data = strings.Join(parts, separator)
	return nil
}

func (z *zoneFile) parseDirective(name string, tokens []token) error {
	switch {
	case len(tokens) < 2:
		return fmt.Errorf("%s lacks its value", name)
	case name == "$ORIGIN":
		origin := strings.ToLower(strings.TrimSuffix(tokens[1].text, "."))
		if z.origin != "" && z.origin != origin {
			return fmt.Errorf("names are relative to %s from here on, and to %s before", origin, z.origin)
		}
		z.origin = origin
	case name == "$TTL":
		ttl, err := parseTTL(tokens[1].text)
		if err != nil || z.ttl != 0 {
			return fmt.Errorf("$TTL is a number of seconds, once in a file")
		}
		z.ttl = ttl
	}
	return nil
}

// absolute is a name in full, with its final dot.
func (z *zoneFile) absolute(name string) string {
	switch {
	case strings.HasSuffix(name, "."):
		return strings.ToLower(name)
	case name == "@":
		return z.origin + "."
	}
	return strings.ToLower(name) + "." + z.origin + "."
}

// relative is a name as this package compares it.
func (z *zoneFile) relative(name string) string {
	name = strings.ToLower(name)
	switch {
	case z.origin == "" || !strings.HasSuffix(name, "."):
		return name
	case name == z.origin+".":
		return "@"
	}
	return strings.TrimSuffix(name, "."+z.origin+".")
}

func parseTTL(text string) (uint32, error) {
	units := map[byte]uint64{'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 604800}
	var total, number uint64
	for _, c := range []byte(strings.ToLower(text)) {
		if c >= '0' && c <= '9' {
			number = number*10 + uint64(c-'0')
		} else {
			total, number = total+number*units[c], 0
		}
		if total+number > 1<<31-1 {
			return 0, fmt.Errorf("%s seconds are too many", text)
		}
	}
	return uint32(total + number), nil
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 32)
	return err == nil
}

// String is the file's text.
func (z *zoneFile) String() string {
	var text strings.Builder
	for _, each := range z.entries {
		text.WriteString(each.text)
		if !strings.HasSuffix(each.text, "\n") {
			text.WriteByte('\n')
		}
	}
	return text.String()
}

// records are the entries with this name and type.
func (z *zoneFile) records(name, kind string) []entry {
	var found []entry
	for _, each := range z.entries {
		if each.name == name && each.kind == kind {
			found = append(found, each)
		}
	}
	return found
}

// replace puts these lines in the place of the records with this name and type, or at the end if there are none.
func (z *zoneFile) replace(name, kind string, lines []string) {
	var kept []entry
	at := -1
	for _, each := range z.entries {
		if each.name == name && each.kind == kind {
			if at < 0 {
				at = len(kept)
			}
			continue
		}
		if each.name == name && each.inherited { // what it inherits from may be gone
			each.text, each.inherited = name+each.text, false
			each.serial[0], each.serial[1] = each.serial[0]+len(name), each.serial[1]+len(name)
		}
		kept = append(kept, each)
	}
	if at < 0 {
		at = len(kept)
	}
	added := make([]entry, len(lines))
	for i, line := range lines {
		added[i] = entry{text: line + "\n", name: name, kind: kind}
	}
	z.entries = append(append(append([]entry{}, kept[:at]...), added...), kept[at:]...)
}

// serial is the number of this version of the zone, by which name servers notice that it has changed.
func (z *zoneFile) serial() (uint32, bool) {
	for _, each := range z.entries {
		if each.kind == "SOA" {
			number, err := strconv.ParseUint(each.text[each.serial[0]:each.serial[1]], 10, 32)
			return uint32(number), err == nil
		}
	}
	return 0, false
}

// count gives the zone the next number. After the highest comes 1, as RFC 1982 has it; 0 is avoided.
func (z *zoneFile) count() {
	serial, _ := z.serial()
	if serial++; serial == 0 {
		serial = 1
	}
	for i, each := range z.entries {
		if each.kind == "SOA" {
			number := strconv.FormatUint(uint64(serial), 10)
			z.entries[i].text = each.text[:each.serial[0]] + number + each.text[each.serial[1]:]
			z.entries[i].serial[1] = each.serial[0] + len(number)
		}
	}
}
