package aws

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/launch"
)

// templates knows which launch templates exist. A template that a launch is using is not collected.
type templates struct {
	p *Provider

	mu   sync.Mutex
	used map[string]*use
}

type use struct {
	turn    chan struct{} // holds one token: whoever takes it makes the template
	exists  bool
	made    bool // by this provider, or perhaps so
	holders int
	last    time.Time
}

func newTemplates(p *Provider) *templates { return &templates{p: p, used: map[string]*use{}} }

// hold makes sure that a template exists and keeps it from being collected until release.
func (t *templates) hold(ctx context.Context, in *ec2.CreateLaunchTemplateInput) (release func(), err error) {
	name := aws.ToString(in.LaunchTemplateName)
	t.mu.Lock()
	u, ok := t.used[name]
	if !ok {
		u = &use{turn: make(chan struct{}, 1)}
		u.turn <- struct{}{}
		t.used[name] = u
	}
	u.holders++
	u.last = t.p.clock.Time()
	t.mu.Unlock()
	release = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		u.holders--
		u.last = t.p.clock.Time()
	}
	select {
	case <-ctx.Done():
		release()
		return nil, ctx.Err()
	case <-u.turn:
	}
	defer func() { u.turn <- struct{}{} }()
	t.mu.Lock()
	exists, mine := u.exists, u.made
	u.made = u.made || !u.exists
	t.mu.Unlock()
	if exists {
		return release, nil
	}
	copied := *in // the SDK adds a client token to what it is given
	// One that exists has the same content, for its name is a hash of it.
	_, err = t.p.clients.EC2.CreateLaunchTemplate(ctx, &copied)
	found := api.Reason(err) == "InvalidLaunchTemplateName.AlreadyExistsException"
	t.mu.Lock()
	if err != nil && !cloudprovider.Advise(err).Unknown {
		u.made = mine // it was refused, or somebody else has made it
	}
	u.exists = err == nil || found
	t.mu.Unlock()
	if err != nil && !found {
		release()
		return nil, err
	}
	return release, nil
}

// lost says that templates which were thought to exist do not.
func (t *templates) lost(names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		if u, ok := t.used[name]; ok {
			u.exists = false
		}
	}
}

// CollectTemplates deletes the cluster's launch templates that were not used for age, and returns their names. Those that a launch of this
// provider is using stay; a launch of another process that loses its template makes it again. Machines do not need their template.
func (p *Provider) CollectTemplates(ctx context.Context, age time.Duration) ([]string, error) {
	var names []string
	pages := ec2.NewDescribeLaunchTemplatesPaginator(p.clients.EC2, &ec2.DescribeLaunchTemplatesInput{
		Filters: []types.Filter{{Name: aws.String("tag:" + launch.ClusterTag), Values: []string{p.options.Cluster}}}, MaxResults: aws.Int32(200),
	})
	now := p.clock.Time()
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, api.Outcome("collect", p.options.Cluster, err)
		}
		for _, t := range page.LaunchTemplates {
			name := aws.ToString(t.LaunchTemplateName)
			if prefix := launch.Prefix(p.options.Cluster); len(name) <= len(prefix) || name[:len(prefix)] != prefix {
				continue
			}
			if now.Sub(aws.ToTime(t.CreateTime)) >= age {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	var deleted []string
	for _, name := range names {
		gone, err := p.templates.collect(ctx, name, age)
		if gone {
			deleted = append(deleted, name)
		}
		if err != nil {
			return deleted, api.Outcome("collect", name, err)
		}
	}
	return deleted, nil
}

// collect deletes a template unless somebody holds it or has used it within age.
func (t *templates) collect(ctx context.Context, name string, age time.Duration) (bool, error) {
	t.mu.Lock()
	u, ok := t.used[name]
	if !ok {
		u = &use{turn: make(chan struct{}, 1)}
		u.turn <- struct{}{}
		t.used[name] = u
	}
	t.mu.Unlock()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-u.turn:
	}
	defer func() { u.turn <- struct{}{} }()
	t.mu.Lock()
	if u.holders > 0 || !u.last.IsZero() && t.p.clock.Time().Sub(u.last) < age {
		t.mu.Unlock()
		return false, nil
	}
	// A launch that wants it from now on waits for its turn and makes it again.
	u.exists = false
	t.mu.Unlock()
	_, err := t.p.clients.EC2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name)})
	if err != nil && api.Reason(err) != "InvalidLaunchTemplateName.NotFoundException" {
		return false, fmt.Errorf("deleting a launch template: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.holders == 0 {
		delete(t.used, name)
	}
	return true, nil
}
