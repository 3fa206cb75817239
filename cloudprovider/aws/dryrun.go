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

// JSON is the input for people to read: fields that are not set are left out, and of user data, where scripts may hold secrets, only the length and
// the hash are told.
func (r Request) JSON() ([]byte, error) { return r.write(true) }

// JSONWithUserData is the input as the command line of AWS takes it (--cli-input-json).
func (r Request) JSONWithUserData() ([]byte, error) { return r.write(false) }

func (r Request) write(hide bool) ([]byte, error) {
	text, err := json.Marshal(r.Input)
	if err != nil {
		return nil, fmt.Errorf("aws: %w", err)
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("aws: %w", err)
	}
	out, err := json.MarshalIndent(prune(tree, hide), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("aws: %w", err)
	}
	return out, nil
}

// prune takes out nulls, empty texts and what is empty without them, and describes user data instead of telling it if it is to be hidden.
func prune(v any, hide bool) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			if text, ok := inner.(string); ok && hide && key == "UserData" && text != "" {
				inner = describeUserData(text)
			}
			if kept := prune(inner, hide); kept != nil {
				out[key] = kept
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, inner := range v {
			if kept := prune(inner, hide); kept != nil {
				out = append(out, kept)
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case string:
		if v == "" {
			return nil
		}
	}
	return v
}

// describeUserData tells one user data from another, and nothing of it.
func describeUserData(encoded string) string {
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		text = []byte(encoded)
	}
	return fmt.Sprintf("%d bytes, sha256 %x", len(text), sha256.Sum256(text))
}

// DryRun says what Create would send for the claims if nothing is refused: instance profiles that do not exist yet, the launch templates, each once,
// and one fleet for each shape of claims. A fleet of several claims is followed by ec2:CreateTags, which says which machine is whose once the ids are
// known. It asks AWS for what node classes select, and changes nothing. Client tokens, which are new in each run, begin with "dry-run".
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
		s, ready, err := p.foresee(ctx, shape, c)
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
		fleets = append(fleets, Request{api.EC2, "CreateFleet", launch.Request(s.fleet(rec.ID, len(group), ready, p.tags(s, c), own))})
	}
	return slices.Concat(profiles, templates, fleets), nil
}

// foresee is the first fleet that Create would ask for, for a claim and those of its shape. It shares nothing with the provider.
func (p *Provider) foresee(ctx context.Context, shape string, c cloudprovider.NodeClaim) (*resolvedClass, prepared, error) {
	known, err := p.resolvedClass(ctx, c.NodeClass.Name)
	if err != nil {
		return nil, prepared{}, err
	}
	offers, err := known.check(c)
	if err != nil {
		return nil, prepared{}, err
	}
	usable := slices.DeleteFunc(offers, func(o offer) bool { return o.image == "" })
	if len(usable) == 0 {
		return nil, prepared{}, invalid(errors.New("no image of the node class boots on any of the candidates"))
	}
	s := *known
	s.templates = &templateCache{} // callers may do with their requests what they like
	list, err := p.prepare(&s, shape, c, attempts(usable)[0])
	if err != nil {
		return nil, prepared{}, err
	}
	return &s, list[0], nil
}

// Permitted asks EC2 whether the caller may launch for a claim, by dry runs of ec2:CreateLaunchTemplate, ec2:RunInstances (with the right to pass the
// role to machines, and to tag them) and ec2:CreateFleet. Nothing is changed. The error joins everything that is refused, each with the IAM action to
// allow; nil means that all would be allowed. What is needed to read is needed here, too. Rights to end and to tag machines that run are not asked for:
// EC2 tells these only of machines that exist.
func (p *Provider) Permitted(ctx context.Context, claim cloudprovider.NodeClaim) error {
	if err := claim.Validate(); err != nil {
		return api.Outcome("permitted", claim.Name, invalid(err))
	}
	s, ready, err := p.foresee(ctx, shapeOf(claim), claim)
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
	_, err = p.clients.EC2.RunInstances(ctx, launch.Alone(p.tags(s, claim), ready.offers[0].t.Name, ready.offers[0].subnet, s.foreign.Name, ready.templates))
	ask(err)
	fleet := launch.Request(s.fleet("dry-run-"+rand.Text(), 1, ready, p.tags(s, claim), nil))
	fleet.DryRun = aws.Bool(true)
	_, err = p.clients.EC2.CreateFleet(ctx, fleet)
	ask(err, "InvalidLaunchTemplateName.NotFoundException") // the templates do not exist yet, which EC2 finds after it has found the caller allowed
	return errors.Join(errs...)
}
