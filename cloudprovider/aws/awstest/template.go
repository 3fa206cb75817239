package awstest

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

type template struct {
	id, name, token string
	created         time.Time
	tags            map[string]string
	data            *params
	version         int
}

var templateName = regexp.MustCompile(`^[a-zA-Z0-9().\-/_]{3,128}$`)

func (c *Cloud) createTemplate(r request) (any, *apiError) {
	p := r.params
	name := p.str("LaunchTemplateName")
	if !templateName.MatchString(name) {
		return nil, &apiError{"InvalidLaunchTemplateName.MalformedException", fmt.Sprintf("The launch template name %q is not valid", name)}
	}
	data := p.get("LaunchTemplateData")
	text, err := base64.StdEncoding.DecodeString(data.str("UserData"))
	if err != nil {
		return nil, &apiError{"InvalidUserData.Malformed", "Invalid BASE64 encoding of user data"}
	}
	if len(text) > 16384 {
		return nil, &apiError{"InvalidParameterValue", "User data is limited to 16384 bytes"}
	}
	if old, ok := c.templates[name]; ok {
		if old.token == "" || old.token != p.str("ClientToken") {
			return nil, &apiError{"InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use."}
		}
		return []el{e("launchTemplate", old.elements())}, nil
	}
	t := &template{id: c.id("lt"), name: name, token: p.str("ClientToken"), created: c.now(), tags: map[string]string{}, data: data, version: 1}
	for _, s := range p.list("TagSpecification") {
		if s.str("ResourceType") == "launch-template" {
			t.tags = s.tags("Tag")
		}
	}
	c.templates[name] = t
	return []el{e("launchTemplate", t.elements())}, nil
}

func (t *template) elements() []el {
	return []el{
		e("launchTemplateId", t.id), e("launchTemplateName", t.name), e("createTime", t.created),
		e("defaultVersionNumber", 1), e("latestVersionNumber", t.version), tagSet(t.tags),
	}
}

func (c *Cloud) describeTemplates(r request) (any, *apiError) {
	var all []*template
	names := r.params.strs("LaunchTemplateName")
	for _, n := range sortedKeys(c.templates) {
		if len(names) == 0 || slices.Contains(names, n) {
			all = append(all, c.templates[n])
		}
	}
	if len(all) < len(names) {
		return nil, &apiError{"InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates specified in the request does not exist."}
	}
	return listing(c, r, all, func(t *template) (tags, fields map[string]string) {
		return t.tags, map[string]string{"launch-template-name": t.name}
	}, "launchTemplates", (*template).elements)
}

// AddTemplate adds a launch template made by others, or a new version of it. fields are like those
// of [Template].
func (c *Cloud) AddTemplate(name string, fields map[string]string) {
	defer c.lock()()
	form := url.Values{}
	for k, v := range fields {
		form.Set(k, v)
	}
	if c.templates[name] == nil {
		c.templates[name] = &template{id: c.id("lt"), name: name, created: c.now(), tags: map[string]string{}}
	}
	c.templates[name].data = parseParams(form)
	c.templates[name].version++
}

func (c *Cloud) describeTemplateVersions(r request) (any, *apiError) {
	name := r.params.str("LaunchTemplateName")
	t, ok := c.templates[name]
	if !ok {
		return nil, &apiError{"InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with template name " + name + ", does not exist."}
	}
	if v := r.params.strs("LaunchTemplateVersion"); !slices.Equal(v, []string{"$Latest"}) && (!slices.Equal(v, []string{"1"}) || t.version != 1) {
		return nil, &apiError{"InvalidParameterValue", "only the latest version is known here"}
	}
	ids := func(at *params) el { return texts("securityGroupIdSet", at.strs("SecurityGroupId")) }
	data := e("launchTemplateData", ids(t.data))
	for _, field := range []string{"ImageId", "UserData"} {
		if value := t.data.str(field); value != "" {
			data.kids = append(data.kids, e(strings.ToLower(field[:1])+field[1:], value))
		}
	}
	if name := t.data.str("IamInstanceProfile", "Name"); name != "" {
		data.kids = append(data.kids, e("iamInstanceProfile", e("name", name)))
	}
	data.kids = append(data.kids, items("networkInterfaceSet", t.data.list("NetworkInterface"), func(n *params) []el {
		groups := e("groupSet")
		for _, id := range n.strs("SecurityGroupId") {
			groups.kids = append(groups.kids, e("groupId", id))
		}
		return []el{e("deviceIndex", n.num("DeviceIndex")), groups}
	}))
	return []el{items("launchTemplateVersionSet", []*template{t}, func(t *template) []el {
		return []el{e("launchTemplateId", t.id), e("launchTemplateName", t.name), e("versionNumber", t.version), e("defaultVersion", t.version == 1), data}
	})}, nil
}

func (c *Cloud) deleteTemplate(r request) (any, *apiError) {
	name := r.params.str("LaunchTemplateName")
	t, ok := c.templates[name]
	if !ok {
		return nil, &apiError{"InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with template name " + name + ", does not exist."}
	}
	delete(c.templates, name)
	return []el{e("launchTemplate", t.elements())}, nil
}

// Template is a launch template as it was sent.
type Template struct {
	Name string
	Tags map[string]string
	// Fields are the parameters below LaunchTemplateData, such as "MetadataOptions.HttpTokens".
	// UserData is decoded.
	Fields   map[string]string
	UserData string
}

// Templates returns the existing launch templates, by name.
func (c *Cloud) Templates() []Template {
	defer c.lock()()
	var out []Template
	for _, name := range sortedKeys(c.templates) {
		t := c.templates[name]
		text, _ := base64.StdEncoding.DecodeString(t.data.str("UserData")) // it was checked
		fields := map[string]string{}
		t.data.flatten("", fields)
		delete(fields, "UserData")
		out = append(out, Template{Name: name, Tags: t.tags, Fields: fields, UserData: string(text)})
	}
	return out
}

// RemoveTemplate deletes a launch template without the caller's knowledge.
func (c *Cloud) RemoveTemplate(name string) {
	defer c.lock()()
	delete(c.templates, name)
}

func (p *params) flatten(prefix string, into map[string]string) {
	if p.value != "" {
		into[strings.TrimSuffix(prefix, ".")] = p.value
	}
	for step, sub := range p.sub {
		sub.flatten(prefix+step+".", into)
	}
}
