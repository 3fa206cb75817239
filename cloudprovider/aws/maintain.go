package aws

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/launch"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/profile"
)

// uses record how this provider uses launch templates or instance profiles, by name. The zero value
// knows nothing.
type uses struct {
	mu sync.Mutex
	by map[string]use
}

type use struct {
	made bool // by this provider, or possibly
	last time.Time
}

// note records a use, and whether this provider has made what is used.
func (u *uses) note(name string, made bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by == nil {
		u.by = map[string]use{}
	}
	u.by[name] = use{u.by[name].made || made, time.Now()}
}

// within reports whether something was used within the given time.
func (u *uses) within(name string, age time.Duration) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Since(u.by[name].last) < age
}

func (u *uses) forget(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.by, name)
}

// mine returns the names of what this provider has made, in ascending order.
func (u *uses) mine() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.DeleteFunc(sortedKeys(u.by), func(name string) bool { return !u.by[name].made })
}

// ensureTemplate finds or makes a launch template and returns its id.
func (p *Provider) ensureTemplate(ctx context.Context, in *ec2.CreateLaunchTemplateInput) (string, error) {
	name := aws.ToString(in.LaunchTemplateName)
	p.ownTemplates.note(name, false)
	return p.templates.Get(ctx, name, func(ctx context.Context) (string, error) {
		copied := *in // the SDK adds a client token to its argument
		out, err := p.clients.EC2.CreateLaunchTemplate(ctx, &copied)
		if api.Reason(err) == "InvalidLaunchTemplateName.AlreadyExistsException" {
			return p.idOf(ctx, in)
		}
		p.ownTemplates.note(name, err == nil || cloudprovider.Advise(err).Unknown)
		if err != nil || out.LaunchTemplate == nil {
			return "", err
		}
		return aws.ToString(out.LaunchTemplate.LaunchTemplateId), nil
	})
}

// idOf returns the id of a template that another launch has made. Its name is the hash of its
// content, which anybody can foresee who may make templates. So what decides over a machine must be
// what was written: its image, its role, and the commands that it runs.
func (p *Provider) idOf(ctx context.Context, in *ec2.CreateLaunchTemplateInput) (string, error) {
	out, err := p.clients.EC2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: in.LaunchTemplateName, Versions: []string{"1"}})
	if err != nil || len(out.LaunchTemplateVersions) == 0 {
		return "", err
	}
	v, want := out.LaunchTemplateVersions[0], in.LaunchTemplateData
	have := cmp.Or(v.LaunchTemplateData, &types.ResponseLaunchTemplateData{})
	var profiles [2]string
	if want.IamInstanceProfile != nil {
		profiles[0] = aws.ToString(want.IamInstanceProfile.Name)
	}
	if have.IamInstanceProfile != nil {
		profiles[1] = aws.ToString(have.IamInstanceProfile.Name)
	}
	if aws.ToString(have.ImageId) != aws.ToString(want.ImageId) || aws.ToString(have.UserData) != aws.ToString(want.UserData) || profiles[0] != profiles[1] {
		return "", &cloudprovider.Error{
			Code: cloudprovider.ErrNotReady, RetryAfter: time.Minute, Err: fmt.Errorf("launch template %q has another image, role or user data than the provider gives it: find out who made it, and delete it", aws.ToString(in.LaunchTemplateName)),
		}
	}
	return aws.ToString(v.LaunchTemplateId), nil
}

// Maintain does the periodic work. Call it every few minutes, with an age of about an hour.
//
//   - It records the owners of machines if an answer was lost or a process was stopped. It ends
//     machines that had no owner in two readings at least a lag apart.
//   - It deletes launch templates and instance profiles that are older than age and that this
//     provider has not used within age. It keeps a profile that a machine has. It returns the names
//     of what it deleted. It is safe during a launch: if the launch finds that its template or
//     profile is gone, it makes it again. Machines do not need their template.
//   - It renews instance types and prices that are no longer new, so that no launch has to wait for
//     them.
//
// Each part runs even if others fail. With [Options].DryRun nothing is recorded, ended or deleted.
func (p *Provider) Maintain(ctx context.Context, age time.Duration) ([]string, error) {
	unreconciled := p.reconcile(ctx)
	deleted, err := p.maintain(ctx, age)
	p.notes.set("renewal", note("types or prices could not be refreshed; the earlier ones are used", p.renew(ctx)))
	return deleted, api.Outcome("maintain", p.options.Cluster, cmp.Or(err, unreconciled))
}

func (p *Provider) maintain(ctx context.Context, age time.Duration) (deleted []string, err error) {
	var names, ids []string
	prefix := launch.Prefix(p.options.Cluster)
	all, err := api.All(ctx, ec2.NewDescribeLaunchTemplatesPaginator(p.clients.EC2, &ec2.DescribeLaunchTemplatesInput{
		Filters: []types.Filter{{Name: aws.String("launch-template-name"), Values: []string{prefix + "*"}}}, MaxResults: aws.Int32(200),
	}), func(o *ec2.DescribeLaunchTemplatesOutput) []types.LaunchTemplate { return o.LaunchTemplates })
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if name := aws.ToString(t.LaunchTemplateName); strings.HasPrefix(name, prefix) {
			ids = append(ids, aws.ToString(t.LaunchTemplateId))
			if time.Since(aws.ToTime(t.CreateTime)) >= age && !p.ownTemplates.within(name, age) {
				names = append(names, name)
			}
		}
	}
	used, err := p.usedProfiles(ctx, ids)
	if err != nil || p.options.DryRun {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := p.deleteTemplate(ctx, name); err != nil {
			return deleted, err
		}
		deleted = append(deleted, name)
	}
	profiles, err := profile.Collect(ctx, p.clients, p.options.Cluster, func(name string) bool { return used[name] || p.ownProfiles.within(name, age) }, age)
	p.profiles.Forget() // otherwise a launch would believe that a deleted profile exists
	return append(deleted, profiles...), err
}

// usedProfiles returns the names of the instance profiles of the cluster's machines. It also notes
// machines without a record. If all tags of a machine were removed, its launch from our templates
// or its profile still identifies it.
func (p *Provider) usedProfiles(ctx context.Context, templates []string) (map[string]bool, error) {
	all, err := p.readBy(ctx, "tag:aws:ec2launchtemplate:id", templates...)
	if err != nil {
		return nil, err
	}
	profiled, err := p.readBy(ctx, "iam-instance-profile.arn", "arn:*:iam::*:instance-profile"+profile.Path(p.clients.Region, p.options.Cluster)+"*")
	if err != nil {
		return nil, err
	}
	all = append(all, profiled...)
	stripped := map[string]bool{}
	records := readerOf(all)
	for _, raw := range all {
		id := aws.ToString(raw.InstanceId)
		_, known := p.memory.Of(id)
		if _, ours, _ := records.Batch(tagsOf(raw)); !ours && !known && stateOf(raw) != cloudprovider.Terminating {
			stripped[id] = true
		}
	}
	p.notes.name("stripped", "machines of the cluster have lost their tags; terminate them by hand", sortedKeys(stripped))
	tagged, err := p.readCluster(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, raw := range append(all, tagged...) {
		if raw.IamInstanceProfile != nil && stateOf(raw) != cloudprovider.Terminating {
			used[path.Base(aws.ToString(raw.IamInstanceProfile.Arn))] = true
		}
	}
	return used, nil
}

// deleteTemplate deletes a launch template. A launch that needs it makes it again.
func (p *Provider) deleteTemplate(ctx context.Context, name string) error {
	p.templates.Forget(name)
	_, err := p.clients.EC2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name)})
	if err != nil && api.Reason(err) != "InvalidLaunchTemplateName.NotFoundException" {
		return fmt.Errorf("deleting a launch template: %w", err)
	}
	p.ownTemplates.forget(name)
	return nil
}
