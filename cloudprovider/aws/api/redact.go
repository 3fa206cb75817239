package api

import (
	"encoding/base64"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// secret matches what AWS may echo in a message: access keys, session tokens, encoded authorization
// messages, user data in base64, and what a text calls a secret. Ids, names and ARNs are short or
// contain other characters. secretKey matches a secret access key with its neighbours.
var (
	secret    = regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{12,}\b|[A-Za-z0-9+/=_]{64,}|(?i:(secret|token|password)[=:]\s*)\S+`)
	secretKey = regexp.MustCompile(`([^A-Za-z0-9+/=]|^)[A-Za-z0-9+/]{40}([^A-Za-z0-9+/=]|$)`)
)

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
	return secretKey.ReplaceAllString(secret.ReplaceAllString(text, redacted), "${1}"+redacted+"${2}")
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
