package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Content types of the parts that this package writes.
const (
	shellType      = `text/x-shellscript; charset="us-ascii"`
	nodeConfigType = "application/node.eks.aws"
	cloudType      = `text/cloud-config; charset="us-ascii"`
)

// part is one part of a MIME archive.
type part struct{ contentType, body string }

// archive returns a MIME archive of the user's parts and ours, which comes last: scripts run in
// this order, and of several NodeConfigs the later one wins. wrap makes one part of a text that is
// not an archive.
func archive(own string, ours part, wrap func(string) part) (string, error) {
	own = strings.ReplaceAll(own, "\r", "")
	var parts []part
	switch {
	case strings.TrimSpace(own) == "":
	case isArchive(own):
		read, err := readArchive(own)
		if err != nil {
			return "", err
		}
		parts = read
	default:
		parts = append(parts, wrap(own))
	}
	return writeArchive(append(parts, ours)), nil
}

// isArchive looks for the headers at the start of a MIME archive.
func isArchive(text string) bool {
	text = strings.TrimSpace(text)
	for _, header := range []string{"mime-version:", "content-type:"} {
		if len(text) >= len(header) && strings.EqualFold(text[:len(header)], header) {
			return true
		}
	}
	return false
}

// readArchive splits an archive into parts. Its errors say what is wrong, without quoting the text.
func readArchive(text string) ([]part, error) {
	message, err := mail.ReadMessage(strings.NewReader(strings.TrimSpace(text)))
	if err != nil {
		return nil, errors.New("userdata: MIME archive: the headers cannot be read: want MIME-Version and Content-Type, then an empty line")
	}
	contentType, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(contentType, "multipart/") || params["boundary"] == "" {
		return nil, errors.New(`userdata: MIME archive: want Content-Type: multipart/mixed with a boundary`)
	}
	reader := multipart.NewReader(message.Body, params["boundary"])
	var parts []part
	for {
		// Raw: an encoded part stays unchanged, with its header.
		p, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		var body []byte
		if err == nil {
			body, err = io.ReadAll(p)
		}
		if err != nil {
			return nil, fmt.Errorf("userdata: MIME archive: part %d is broken or the closing boundary is missing", len(parts)+1)
		}
		header := p.Header.Get("Content-Type")
		if header == "" {
			header = shellType
		}
		for _, more := range []string{"Content-Transfer-Encoding", "Content-Disposition"} {
			if v := p.Header.Get(more); v != "" {
				header += "\n" + more + ": " + v
			}
		}
		parts = append(parts, part{header, string(body)})
	}
}

// writeArchive uses the boundary "//", unless a part has a line that looks like it.
func writeArchive(parts []part) string {
	boundary := "//"
	for clashes(parts, boundary) {
		boundary += "/"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=%q\n\n", boundary)
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\nContent-Type: %s\n\n%s\n", boundary, p.contentType, strings.TrimRight(p.body, "\n"))
	}
	fmt.Fprintf(&b, "--%s--\n", boundary)
	return b.String()
}

func clashes(parts []part, boundary string) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return strings.Contains("\n"+p.body, "\n--"+boundary) })
}

func wrapShell(text string) part { return part{shellType, text} }

// wrapNodeConfig recognizes a NodeConfig, cloud-config or a script.
func wrapNodeConfig(text string) part {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "#cloud-config") {
		return part{cloudType, text}
	}
	var object map[string]any
	if !strings.HasPrefix(trimmed, "#!") && yaml.Unmarshal([]byte(text), &object) == nil && len(object) > 0 {
		return part{nodeConfigType, text}
	}
	return part{shellType, text}
}
