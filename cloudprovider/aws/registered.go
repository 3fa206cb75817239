package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// learned is the memory that nodes have reported, in MiB by instance type: what hypervisor and firmware keep for themselves is published nowhere.
type learned struct {
	mu  sync.Mutex
	mib map[string]int64
}

func newLearned(before map[string]int64) *learned {
	l := &learned{mib: map[string]int64{}}
	maps.Copy(l.mib, before)
	return l
}

// note keeps the least that was seen, and says whether that is news.
func (l *learned) note(typ string, mib int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, ok := l.mib[typ]; ok && old <= mib {
		return false
	}
	l.mib[typ] = mib
	return true
}

func (l *learned) all() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.mib)
}

// Registered learns from a node that has joined how much memory machines of its type have: the catalogue only estimates that until then. And it
// names the machine after its node, and after its claim if it was launched together with others, by tags that people see; a name that the node class or
// another one gave it stays. It implements cloudprovider.RegistrationHook.
func (p *Provider) Registered(ctx context.Context, id string, node *corev1.Node) error {
	if node == nil {
		return api.Outcome("registered", id, invalid(fmt.Errorf("no node")))
	}
	if have := node.Spec.ProviderID; have != id {
		return api.Outcome("registered", id, invalid(fmt.Errorf("node %q is of the instance %q", node.Name, have)))
	}
	f, err := p.get(ctx, id)
	if err != nil {
		return api.Outcome("registered", id, err)
	}
	q, ok := node.Status.Capacity[corev1.ResourceMemory]
	if !ok || q.Sign() <= 0 {
		return &cloudprovider.Error{Code: cloudprovider.ErrNotReady, Op: "registered", Subject: id, Err: fmt.Errorf("node %q does not report its memory yet", node.Name)}
	}
	if p.learned.note(f.instance.Type, resources.Capacity(corev1.ResourceMemory, q)>>20) {
		p.resolved.Forget()
	}
	return api.Outcome("registered", id, p.name(ctx, f, node.Name))
}

// name puts those tags on a machine that it does not have yet.
func (p *Provider) name(ctx context.Context, f *found, node string) error {
	if p.options.DryRun {
		return nil
	}
	if f.raw.InstanceId == nil {
		return &cloudprovider.Error{Code: cloudprovider.ErrNotReady, RetryAfter: time.Second, Err: errors.New("EC2 does not show the new instance everywhere yet")}
	}
	if err := p.checkZone(ctx, f.instance.ID); err != nil {
		return err
	}
	have := tagsOf(f.raw)
	var tags []types.Tag
	for _, tag := range []struct{ key, value string }{{"Name", short(node)}, {p.options.tagClaim(), short(f.instance.Claim)}} {
		if have[tag.key] == "" && tag.value != "" {
			tags = append(tags, types.Tag{Key: aws.String(tag.key), Value: aws.String(tag.value)})
		}
	}
	if len(tags) == 0 {
		return nil
	}
	_, err := p.clients.EC2.CreateTags(ctx, &sdk.CreateTagsInput{Resources: []string{aws.ToString(f.raw.InstanceId)}, Tags: tags})
	return err
}

// Learned is the memory in MiB that nodes have reported, the least for each instance type. A new map: keep it and hand it to the next provider
// in its options, so that a restart forgets nothing.
func (p *Provider) Learned() map[string]int64 { return p.learned.all() }

const (
	mostTags        = 50  // on one machine, by EC2
	mostTagValue    = 256 // characters
	nameTags        = 2   // the names of node and claim, once the node has joined
	sealCharsOfEach = 12  // characters that a machine takes in the seal
)

// sealTags is how many tags the seal of so many claims takes.
func sealTags(claims int) int { return (sealCharsOfEach*claims + mostTagValue - 1) / mostTagValue }

func short(text string) string { return text[:min(len(text), mostTagValue)] }
