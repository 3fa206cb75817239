package aws

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/launch"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/profile"
)

// Request is a request that would be sent.
type Request struct {
	// Service and Action name the call, as in EC2 and CreateFleet.
	Service, Action string
	// Input is the SDK's input.
	Input any
}

// JSON returns the input in readable form. Unset fields are left out. For user data, whose scripts
// may hold secrets, it has only the length and the hash.
func (r Request) JSON() ([]byte, error) { return r.write(true) }

// JSONWithUserData returns the input in the form that the AWS command line accepts
// (--cli-input-json).
func (r Request) JSONWithUserData() ([]byte, error) { return r.write(false) }

func (r Request) write(hide bool) ([]byte, error) {
	var tree any
	text, err := json.Marshal(r.Input)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		err = d.Decode(&tree)
	}
	if err == nil {
		text, err = json.MarshalIndent(prune(tree, hide), "", "  ")
	}
	if err != nil {
		return nil, fmt.Errorf("aws: %w", err)
	}
	return text, nil
}

// prune removes nulls, empty strings and values that are empty without them. It replaces user data
// with a description if hide is set.
func prune(v any, hide bool) any {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if text, ok := inner.(string); ok && hide && key == "UserData" && text != "" {
				inner = describeUserData(text)
			}
			v[key] = prune(inner, hide)
		}
		maps.DeleteFunc(v, func(_ string, inner any) bool { return inner == nil })
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = prune(v[i], hide)
		}
		list := slices.DeleteFunc(v, func(inner any) bool { return inner == nil })
		if len(list) == 0 {
			return nil
		}
		return list
	case string:
		if v == "" {
			return nil
		}
	}
	return v
}

// describeUserData distinguishes user data without revealing it.
func describeUserData(encoded string) string {
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		text = []byte(encoded)
	}
	return fmt.Sprintf("%d bytes, sha256 %x", len(text), sha256.Sum256(text))
}

// DryRun returns what Create would send for the claims if nothing is refused: instance profiles
// that do not exist yet, the launch templates, each once, and one fleet for claims that are
// launched alike, as in [Provider.Create]. After a fleet of several claims, ec2:CreateTags records
// which machine belongs to which claim, once the ids are known. DryRun asks AWS what node classes
// select, and changes nothing. Client tokens, which are new in each run, begin with "dry-run".
func (p *Provider) DryRun(ctx context.Context, claims []cloudprovider.NodeClaim) ([]Request, error) {
	groups := map[string][]cloudprovider.NodeClaim{}
	var shapes []string
	for _, c := range claims {
		if err := c.Validate(); err != nil {
			return nil, api.Outcome("dry run", c.Name, invalid(err))
		}
		shape := shapeOf(c)
		if groups[shape] == nil {
			shapes = append(shapes, shape)
		}
		groups[shape] = append(groups[shape], c)
	}
	var profiles, templates, fleets []Request
	seen := map[string]bool{}
	for n, shape := range shapes {
		group := groups[shape]
		c := group[0]
		s, ready, err := p.foresee(ctx, c)
		if err != nil {
			return nil, api.Outcome("dry run", c.Name, err)
		}
		if role := s.class.Role; role != "" && s.class.InstanceProfile == "" && !seen["role "+role] {
			seen["role "+role] = true
			create, add, err := profile.Missing(ctx, p.clients, p.options.Cluster, role)
			if err != nil {
				return nil, api.Outcome("dry run", c.Name, err)
			}
			if create != nil {
				profiles = append(profiles, Request{api.IAM, "CreateInstanceProfile", create}, Request{api.IAM, "AddRoleToInstanceProfile", add})
			}
		}
		for _, t := range ready.templates {
			if name := aws.ToString(t.LaunchTemplateName); !seen[name] {
				seen[name] = true
				templates = append(templates, Request{api.EC2, "CreateLaunchTemplate", t})
			}
		}
		rec := batchOf(fmt.Sprintf("dry-run-%d", n+1), s, group)
		own, err := p.ownTags(rec)
		if err != nil {
			return nil, api.Outcome("dry run", c.Name, err)
		}
		fleets = append(fleets, Request{api.EC2, "CreateFleet", s.fleet(rec.ID, len(group), ready, p.tags(s, c), own)})
	}
	return slices.Concat(profiles, templates, fleets), nil
}

// foresee returns the first fleet that Create would ask for, for a claim and others of its shape.
func (p *Provider) foresee(ctx context.Context, c cloudprovider.NodeClaim) (*resolvedClass, prepared, error) {
	s, err := p.resolvedClass(ctx, c.NodeClass.Name, c.Pool)
	if err != nil {
		return nil, prepared{}, err
	}
	offers, err := s.check(c)
	if err != nil {
		return nil, prepared{}, err
	}
	usable := slices.DeleteFunc(offers, func(o offer) bool { return o.image == "" })
	if len(usable) == 0 {
		return nil, prepared{}, invalid(errors.New("no image of the node class boots on any of the candidates"))
	}
	ready, _, err := p.prepare(s, c, inOrder(usable))
	return s, ready, err
}

// Permitted asks EC2 whether the caller may launch for a claim. It uses dry runs of
// ec2:CreateLaunchTemplate, ec2:RunInstances (with the right to pass the role to machines and to
// tag them) and ec2:CreateFleet. Nothing is changed. The error joins everything that is refused,
// each with the IAM action to allow; nil means that all would be allowed. The permissions to read
// are needed here too. Permissions to end and tag running machines are not checked, because EC2
// decides these only for existing machines.
func (p *Provider) Permitted(ctx context.Context, claim cloudprovider.NodeClaim) error {
	if err := claim.Validate(); err != nil {
		return api.Outcome("permitted", claim.Name, invalid(err))
	}
	s, ready, err := p.foresee(ctx, claim)
	if err != nil {
		return api.Outcome("permitted", claim.Name, err)
	}
	var errs []error
	ask := func(err error, fine ...string) {
		if reason := api.Reason(err); err != nil && reason != api.DryRunOperation && !slices.Contains(fine, reason) {
			errs = append(errs, api.Outcome("permitted", claim.Name, err))
		}
	}
	for _, t := range ready.templates {
		in := *t
		in.DryRun = aws.Bool(true)
		_, err := p.clients.EC2.CreateLaunchTemplate(ctx, &in)
		ask(err, "InvalidLaunchTemplateName.AlreadyExistsException")
	}
	_, err = p.clients.EC2.RunInstances(ctx, launch.Alone(p.tags(s, claim), ready.offers[0].t.Name, ready.offers[0].subnet, ready.templates[0].LaunchTemplateData))
	ask(err)
	fleet := s.fleet("dry-run-"+rand.Text(), 1, ready, p.tags(s, claim), nil)
	fleet.DryRun = aws.Bool(true)
	_, err = p.clients.EC2.CreateFleet(ctx, fleet)
	ask(err, "InvalidLaunchTemplateName.NotFoundException") // the templates do not exist yet; EC2 says so only after it has allowed the caller
	return errors.Join(errs...)
}
