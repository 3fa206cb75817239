// Command generate writes the table of package model from the service descriptions in botocore. For
// the operations that the small AWS answers, it writes the shapes of the requests and the
// documented filters. Call it with "go generate"; "make moto" installs what it reads.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// operations are what the small AWS answers, by botocore's names of the services.
var operations = []struct {
	folder, service string
	names           []string
}{
	{"ec2", "EC2", []string{
		"CreateFleet", "CreateLaunchTemplate", "CreateTags", "DeleteLaunchTemplate", "DescribeCapacityReservations", "DescribeImages",
		"DescribeInstanceStatus", "DescribeInstanceTypeOfferings", "DescribeInstanceTypes", "DescribeInstances", "DescribeLaunchTemplateVersions",
		"DescribeLaunchTemplates", "DescribePlacementGroups", "DescribeSecurityGroups", "DescribeSpotPriceHistory", "DescribeSubnets",
		"ModifyInstanceAttribute", "RunInstances", "TerminateInstances",
	}},
	{"iam", "IAM", []string{
		"AddRoleToInstanceProfile", "CreateInstanceProfile", "DeleteInstanceProfile", "GetInstanceProfile", "ListInstanceProfiles", "RemoveRoleFromInstanceProfile",
	}},
	{"pricing", "Pricing", []string{"GetProducts"}},
	{"sqs", "SQS", []string{"DeleteMessageBatch", "GetQueueUrl", "ReceiveMessage", "SendMessage"}},
	{"ssm", "SSM", []string{"GetParameters"}},
}

type description struct {
	Metadata   struct{ Protocol string }
	Operations map[string]struct{ Input struct{ Shape string } }
	Shapes     map[string]shape
}

type shape struct {
	Type     string
	Members  map[string]member
	Member   member
	Key      member
	Value    member
	Required []string
	Enum     []string
	Min, Max *json.Number
	Pattern  string
}

type member struct {
	Shape, LocationName, QueryName, Documentation string
	Flattened                                     bool
}

func main() {
	from := flag.String("botocore", "", "the folder of the package botocore; empty = look below .cache/moto")
	into := flag.String("out", "operations.txt", "the file to write")
	flag.Parse()
	text, err := Table(*from)
	if err == nil {
		err = os.WriteFile(*into, text, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Table is the whole table.
func Table(botocore string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("# Written by generate from botocore's descriptions of the services. Do not edit.\n")
	for _, o := range operations {
		pattern := filepath.Join(botocore, "data", o.folder, "*", "service-2.json.gz")
		if botocore == "" {
			pattern = filepath.Join("..", "..", "..", "..", "..", ".cache", "moto", "lib", "python*", "site-packages", "botocore", "data", o.folder, "*", "service-2.json.gz")
		}
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			return nil, errors.Join(err, fmt.Errorf("generate: no description of %s in %s: run \"make moto\"", o.service, pattern))
		}
		d, err := read(slices.Max(files))
		if err != nil {
			return nil, err
		}
		if err := d.write(&b, o.service, o.names); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func read(file string) (d description, err error) {
	f, err := os.Open(file)
	if err != nil {
		return d, fmt.Errorf("generate: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return d, fmt.Errorf("generate: %s: %w", file, err)
	}
	if err := json.NewDecoder(z).Decode(&d); err != nil {
		return d, fmt.Errorf("generate: %s: %w", file, err)
	}
	return d, nil
}

// write writes the operations of a service, and then all shapes of their requests.
func (d description) write(b *bytes.Buffer, service string, names []string) error {
	used := map[string]bool{}
	for _, name := range names {
		op, ok := d.Operations[name]
		if !ok {
			return fmt.Errorf("generate: %s has no operation %s", service, name)
		}
		fmt.Fprintf(b, "operation %s %s %s", service, name, op.Input.Shape)
		list := filters(d.Shapes[op.Input.Shape])
		if name == "DescribeCapacityReservations" {
			// "Filter your Amazon EC2 resources" in the User Guide says that all resources with
			// tags can be filtered by them. The description of this call leaves that out.
			list = append(list, "tag-key", "tag:")
		}
		for _, filter := range list {
			b.WriteString(" " + filter)
		}
		b.WriteString("\n")
		d.collect(op.Input.Shape, used)
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if line := d.line(name); line != "" {
			fmt.Fprintf(b, "shape %s %s %s\n", service, name, line)
		}
	}
	return nil
}

func (d description) collect(name string, used map[string]bool) {
	if used[name] {
		return
	}
	used[name] = true
	s := d.Shapes[name]
	for _, m := range s.Members {
		d.collect(m.Shape, used)
	}
	for _, m := range []member{s.Member, s.Key, s.Value} {
		if m.Shape != "" {
			d.collect(m.Shape, used)
		}
	}
}

// manyValues is how many values of an enumeration the table names. Longer ones, such as that of all
// instance types, are out of date in a week.
const manyValues = 150

// ref returns the name by which other shapes refer to a shape. A shape without limits is named by
// its type.
func (d description) ref(name string) string {
	if d.line(name) == "" {
		return d.Shapes[name].Type
	}
	return name
}

// line describes a shape. It is empty for scalars without limits.
func (d description) line(name string) string {
	s := d.Shapes[name]
	limits := ""
	if s.Min != nil {
		limits += " min=" + s.Min.String()
	}
	if s.Max != nil {
		limits += " max=" + s.Max.String()
	}
	switch s.Type {
	case "structure":
		var out strings.Builder
		out.WriteString("structure")
		for _, key := range slices.Sorted(maps.Keys(s.Members)) {
			m := s.Members[key]
			mark := ""
			if slices.Contains(s.Required, key) {
				mark = "!"
			}
			out.WriteString(" " + d.wire(key, m) + ":" + d.ref(m.Shape) + mark)
		}
		return out.String()
	case "list":
		return "list " + d.ref(s.Member.Shape) + limits
	case "map":
		return "map " + d.ref(s.Value.Shape) + limits
	}
	if len(s.Enum) > 0 && len(s.Enum) <= manyValues {
		return s.Type + " enum=" + strings.Join(s.Enum, "|")
	}
	if p := s.Pattern; p != "" && !strings.ContainsAny(p, " \t\r\n") {
		if _, err := regexp.Compile("^(?:" + p + ")$"); err == nil {
			limits += " pattern=" + p
		}
	}
	if limits == "" {
		return ""
	}
	return s.Type + limits
}

// wire returns a member's name in a request of the service's protocol.
func (d description) wire(key string, m member) string {
	switch {
	case d.Metadata.Protocol == "ec2" && m.QueryName != "":
		return m.QueryName
	case d.Metadata.Protocol == "ec2" && m.LocationName != "":
		return strings.ToUpper(m.LocationName[:1]) + m.LocationName[1:]
	case d.Metadata.Protocol == "query" && m.LocationName != "":
		return m.LocationName
	default:
		return key
	}
}

var bullet = regexp.MustCompile(`<(/?)(ul|li)>|<code>([^<]*)</code>`)

// filters returns the names listed in the documentation of a request; names of tags are "tag:".
// Lists within lists are values.
func filters(s shape) []string {
	var out []string
	depth, fresh := 0, false
	for _, hit := range bullet.FindAllStringSubmatch(s.Members["Filters"].Documentation, -1) {
		switch {
		case hit[2] == "ul" && hit[1] == "":
			depth++
		case hit[2] == "ul":
			depth--
		case hit[2] == "li":
			fresh = hit[1] == "" && depth == 1
		case fresh:
			fresh = false
			name := strings.TrimSpace(hit[3])
			if name == "tag" || strings.HasPrefix(name, "tag:") {
				name = "tag:"
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
