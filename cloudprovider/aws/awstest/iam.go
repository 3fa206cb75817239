package awstest

import (
	"fmt"
	"strings"
	"time"
)

type profile struct {
	home, name, path, role string // home is the beginning of ARNs
	created, changed       time.Time
}

func (p *profile) arn() string { return p.home + ":instance-profile" + p.path + p.name }

func (p *profile) elements() []el {
	roles := e("Roles")
	if p.role != "" {
		roles.kids = append(roles.kids, e("member", e("RoleName", p.role), e("Path", "/"), e("RoleId", "AROA"), e("Arn", p.home+":role/"+p.role), e("CreateDate", p.created)))
	}
	return []el{
		e("InstanceProfileName", p.name), e("Path", p.path), e("InstanceProfileId", "AIPA"),
		e("Arn", p.arn()), e("CreateDate", p.created), roles,
	}
}

func (c *Cloud) profile(r request) (*profile, *apiError) {
	name := r.params.str("InstanceProfileName")
	p, ok := c.profiles[name]
	if !ok {
		return nil, &apiError{"NoSuchEntity", fmt.Sprintf("Instance Profile %s cannot be found.", name)}
	}
	return p, nil
}

func (c *Cloud) getProfile(r request) (any, *apiError) {
	p, failure := c.profile(r)
	if failure != nil {
		return nil, failure
	}
	return []el{e("InstanceProfile", p.elements())}, nil
}

func (c *Cloud) createProfile(r request) (any, *apiError) {
	name, path := r.params.str("InstanceProfileName"), r.params.str("Path")
	if len(name) > 128 || name == "" {
		return nil, &apiError{"ValidationError", "The name of an instance profile has 1 to 128 characters"}
	}
	if path == "" {
		path = "/"
	}
	if c.profiles[name] != nil {
		return nil, &apiError{"EntityAlreadyExists", fmt.Sprintf("Instance Profile %s already exists.", name)}
	}
	p := &profile{home: c.arn("iam", ""), name: name, path: path, created: c.now(), changed: c.now()}
	c.profiles[name] = p
	return []el{e("InstanceProfile", p.elements())}, nil
}

func (c *Cloud) addRole(r request) (any, *apiError) {
	p, failure := c.profile(r)
	role := r.params.str("RoleName")
	switch {
	case failure != nil:
		return nil, failure
	case !c.roles[role]:
		return nil, &apiError{"NoSuchEntity", fmt.Sprintf("The role with name %s cannot be found.", role)}
	case p.role != "":
		return nil, &apiError{"LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1"}
	}
	p.role, p.changed = role, c.now()
	return []el{}, nil
}

func (c *Cloud) removeRole(r request) (any, *apiError) {
	p, failure := c.profile(r)
	if failure != nil {
		return nil, failure
	}
	if p.role != r.params.str("RoleName") {
		return nil, &apiError{"NoSuchEntity", "The profile does not have the role"}
	}
	p.role = ""
	return []el{}, nil
}

func (c *Cloud) deleteProfile(r request) (any, *apiError) {
	p, failure := c.profile(r)
	if failure != nil {
		return nil, failure
	}
	if p.role != "" {
		return nil, &apiError{"DeleteConflict", "Cannot delete entity, must remove roles from instance profile first."}
	}
	delete(c.profiles, p.name)
	return []el{}, nil
}

func (c *Cloud) listProfiles(r request) (any, *apiError) {
	members := e("InstanceProfiles")
	for _, name := range sortedKeys(c.profiles) {
		if p := c.profiles[name]; strings.HasPrefix(p.path, r.params.str("PathPrefix")) {
			members.kids = append(members.kids, e("member", p.elements()))
		}
	}
	return []el{members, e("IsTruncated", false)}, nil
}

// AddProfile adds an existing instance profile.
func (c *Cloud) AddProfile(name, role string) {
	defer c.lock()()
	c.roles[role] = true
	c.profiles[name] = &profile{home: c.arn("iam", ""), name: name, path: "/", role: role, created: c.now()}
}

// AddRole adds a role that instances may have.
func (c *Cloud) AddRole(name string) {
	defer c.lock()()
	c.roles[name] = true
}

// Profiles returns the names of the instance profiles.
func (c *Cloud) Profiles() []string {
	defer c.lock()()
	return sortedKeys(c.profiles)
}

// RemoveProfile deletes an instance profile without the caller's knowledge.
func (c *Cloud) RemoveProfile(name string) {
	defer c.lock()()
	delete(c.profiles, name)
}
