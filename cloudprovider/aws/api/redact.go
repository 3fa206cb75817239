package api

import (
	"encoding/base64"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// secret matches what AWS may echo in a message: access keys and their secrets, session tokens,
// encoded authorization messages, and user data in base64. Ids, names and ARNs are short or contain
// other characters.
var secret = regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{12,}\b|[A-Za-z0-9+/=_]{64,}|(?:[^A-Za-z0-9+/=]|^)[A-Za-z0-9+/]{40}(?:[^A-Za-z0-9+/=]|$)|(?i:(secret|token|password)[=:]\s*)\S+`)

const redacted = "[redacted]"

// Redact removes from a text of AWS what must not be in an error or a log: anything that looks like
// a credential or like user data, and every line of the given texts.
func Redact(text string, private ...string) string {
	for _, p := range private {
		if len(p) >= 6 {
			text = strings.ReplaceAll(text, p, redacted)
		}
		for line := range strings.Lines(p) {
			if line = strings.TrimSpace(line); len(line) >= 6 {
				text = strings.ReplaceAll(text, line, redacted)
			}
		}
	}
	return secret.ReplaceAllStringFunc(text, func(match string) string {
		first, last := "", ""
		if len(match) == 42 || len(match) == 41 { // the neighbours of a secret key are not part of it
			if !plain(match[0]) {
				first = match[:1]
			}
			if !plain(match[len(match)-1]) {
				last = match[len(match)-1:]
			}
		}
		return first + redacted + last
	})
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("+/=", c) >= 0
}

// userData returns the user data in an input of the SDK, as it is and decoded.
func userData(input any) []string {
	var text *string
	var data *types.RequestLaunchTemplateData
	switch in := input.(type) {
	case *ec2.CreateLaunchTemplateInput:
		data = in.LaunchTemplateData
	case *ec2.CreateLaunchTemplateVersionInput:
		data = in.LaunchTemplateData
	case *ec2.RunInstancesInput:
		text = in.UserData
	}
	if data != nil {
		text = data.UserData
	}
	if text == nil {
		return nil
	}
	out := []string{*text}
	if plainText, err := base64.StdEncoding.DecodeString(*text); err == nil {
		out = append(out, string(plainText))
	}
	return out
}
