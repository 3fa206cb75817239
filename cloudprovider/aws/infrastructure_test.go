package aws_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
)

// authorization is a question to IAM.
type authorization struct {
	Action   string         `json:"action"`
	Resource string         `json:"resource"`
	Context  map[string]any `json:"context"`
}

// authorizer writes down what IAM is asked for each call, as the Service Authorization Reference has it.
type authorizer struct {
	cloud             *awstest.Cloud
	partition, region string

	mu    sync.Mutex
	asked map[string]bool
}

func (a *authorizer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
		a.note(r, body)
	} else {
		a.note(r, nil)
	}
	return a.cloud.RoundTrip(r)
}

func (a *authorizer) ask(action, resource string, of map[string]any) {
	if of == nil {
		of = map[string]any{}
	}
	of["aws:RequestedRegion"] = a.region
	text, _ := json.Marshal(authorization{action, resource, of}) // nothing but texts
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[string(text)] = true
}

func (a *authorizer) arn(service, resource string) string {
	return fmt.Sprintf("arn:%s:%s:%s:%s:%s", a.partition, service, a.region, account, resource)
}

// tagsAt are the tags of a request below a prefix, as in TagSpecification.1.
func tagsAt(form url.Values, prefix string) map[string]string {
	out := map[string]string{}
	for i := 1; form.Has(fmt.Sprintf("%s.Tag.%d.Key", prefix, i)); i++ {
		out[form.Get(fmt.Sprintf("%s.Tag.%d.Key", prefix, i))] = form.Get(fmt.Sprintf("%s.Tag.%d.Value", prefix, i))
	}
	return out
}

// tagged is what conditions see of tags: of the request and of the resource. Only the cluster's are of interest.
func tagged(request, resource map[string]string) map[string]any {
	out := map[string]any{}
	var keys []string
	for k, v := range request {
		keys = append(keys, k)
		if strings.HasPrefix(k, "kubernetes.io/") || k == "joinery/cluster" {
			out["aws:RequestTag/"+k] = v
		}
	}
	for k, v := range resource {
		if strings.HasPrefix(k, "kubernetes.io/") || k == "joinery/cluster" {
			out["aws:ResourceTag/"+k] = v
		}
	}
	slices.Sort(keys)
	if len(keys) > 0 {
		out["aws:TagKeys"] = keys
	}
	return out
}

func with(c map[string]any, key string, value any) map[string]any {
	c[key] = value
	return c
}

func (a *authorizer) note(r *http.Request, body []byte) {
	service, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch service {
	case "AmazonSSM":
		var in struct{ Names []string }
		_ = json.Unmarshal(body, &in)
		for _, n := range in.Names {
			a.ask("ssm:"+action, fmt.Sprintf("arn:%s:ssm:%s::parameter%s", a.partition, a.region, n), nil)
		}
		return
	case "AmazonSQS":
		a.ask("sqs:"+strings.TrimSuffix(action, "Batch"), a.arn("sqs", "harbour"), nil)
		return
	case "AWSPriceListService":
		a.ask("pricing:"+action, "*", nil)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/clusters/") {
		a.ask("eks:DescribeCluster", a.arn("eks", "cluster/harbour"), nil)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/managedresources/") {
		a.ask("arc-zonal-shift:GetManagedResource", a.arn("eks", "cluster/harbour"), nil)
		return
	}
	form, _ := url.ParseQuery(string(body))
	action = form.Get("Action")
	if form.Get("Version") == "2010-05-08" {
		a.ofIAM(action, form)
		return
	}
	a.ofEC2(action, form)
}

func (a *authorizer) ofIAM(action string, form url.Values) {
	role := fmt.Sprintf("arn:%s:iam::%s:role/%s", a.partition, account, form.Get("RoleName"))
	profile := fmt.Sprintf("arn:%s:iam::%s:instance-profile", a.partition, account)
	path := fmt.Sprintf("/joinery/%s/harbour/", a.region)
	switch action {
	case "ListInstanceProfiles":
		a.ask("iam:"+action, profile+form.Get("PathPrefix"), nil)
	case "CreateInstanceProfile":
		a.ask("iam:"+action, profile+form.Get("Path")+form.Get("InstanceProfileName"), nil)
		a.ask("iam:TagInstanceProfile", profile+form.Get("Path")+form.Get("InstanceProfileName"), nil)
	case "GetInstanceProfile":
		a.ask("iam:"+action, profile+"/"+form.Get("InstanceProfileName"), nil) // without its path if it does not exist
		a.ask("iam:"+action, profile+path+form.Get("InstanceProfileName"), nil)
	default:
		a.ask("iam:"+action, profile+path+form.Get("InstanceProfileName"), nil)
		if action == "AddRoleToInstanceProfile" {
			a.ask("iam:PassRole", role, map[string]any{"iam:PassedToService": a.passedTo()})
		}
	}
}

func (a *authorizer) passedTo() string {
	if a.partition == "aws-cn" {
		return "ec2.amazonaws.com.cn"
	}
	return "ec2.amazonaws.com"
}

// made asks for a resource that a call makes, with tags.
func (a *authorizer) made(actions []string, kind string, tags map[string]string) {
	for _, action := range actions {
		a.ask("ec2:"+action, a.arn("ec2", kind+"/*"), tagged(tags, nil))
		if len(tags) > 0 {
			a.ask("ec2:CreateTags", a.arn("ec2", kind+"/*"), with(tagged(tags, nil), "ec2:CreateAction", action))
		}
	}
}

func (a *authorizer) ofEC2(action string, form url.Values) {
	tagsOf := func(id string) map[string]string {
		for _, m := range a.cloud.Truth() {
			if m.ID == id {
				return m.Tags
			}
		}
		return map[string]string{"kubernetes.io/cluster/harbour": "owned"} // it is gone
	}
	template := func(name string) map[string]string {
		for _, l := range a.cloud.Templates() {
			if l.Name == name {
				return l.Tags
			}
		}
		return map[string]string{"kubernetes.io/cluster/harbour": "owned"}
	}
	switch {
	case strings.HasPrefix(action, "Describe"):
		a.ask("ec2:"+action, "*", nil)
	case action == "CreateLaunchTemplate":
		a.made([]string{action}, "launch-template", tagsAt(form, "TagSpecification.1"))
	case action == "DeleteLaunchTemplate":
		a.ask("ec2:"+action, a.arn("ec2", "launch-template/lt-1"), tagged(nil, template(form.Get("LaunchTemplateName"))))
	case action == "TerminateInstances":
		for i := 1; form.Has(fmt.Sprintf("InstanceId.%d", i)); i++ {
			id := form.Get(fmt.Sprintf("InstanceId.%d", i))
			a.ask("ec2:"+action, a.arn("ec2", "instance/i-1"), tagged(nil, tagsOf(id)))
		}
	case action == "CreateTags":
		for i := 1; form.Has(fmt.Sprintf("ResourceId.%d", i)); i++ {
			tags := map[string]string{}
			for k := 1; form.Has(fmt.Sprintf("Tag.%d.Key", k)); k++ {
				tags[form.Get(fmt.Sprintf("Tag.%d.Key", k))] = ""
			}
			a.ask("ec2:"+action, a.arn("ec2", "instance/i-1"), tagged(tags, tagsOf(form.Get(fmt.Sprintf("ResourceId.%d", i)))))
		}
	case action == "CreateFleet":
		launches := []string{"RunInstances", "CreateFleet"}
		for i := 1; form.Has(fmt.Sprintf("TagSpecification.%d.ResourceType", i)); i++ {
			prefix := fmt.Sprintf("TagSpecification.%d", i)
			kind := form.Get(prefix + ".ResourceType")
			if kind == "fleet" {
				a.made(launches[1:], kind, tagsAt(form, prefix))
				continue
			}
			a.made(launches, kind, tagsAt(form, prefix))
		}
		for i := 1; form.Has(fmt.Sprintf("LaunchTemplateConfigs.%d.LaunchTemplateSpecification.LaunchTemplateName", i)); i++ {
			name := form.Get(fmt.Sprintf("LaunchTemplateConfigs.%d.LaunchTemplateSpecification.LaunchTemplateName", i))
			for _, l := range launches {
				a.ask("ec2:"+l, a.arn("ec2", "launch-template/lt-1"), tagged(nil, template(name)))
			}
			for _, l := range a.cloud.Templates() {
				if l.Name != name {
					continue
				}
				form := url.Values{}
				for k, v := range l.Fields {
					form.Set(k, v)
				}
				if tags := tagsAt(form, "TagSpecification.1"); len(tags) > 0 {
					a.made(launches[:1], form.Get("TagSpecification.1.ResourceType"), tags)
				}
			}
		}
		for _, used := range []string{"subnet/subnet-1", "security-group/sg-1", "capacity-reservation/cr-1", "placement-group/pg-1", "snapshot/snap-1"} {
			a.ask("ec2:RunInstances", a.arn("ec2", used), nil)
		}
		a.ask("ec2:RunInstances", fmt.Sprintf("arn:%s:ec2:%s::image/ami-1", a.partition, a.region), nil)
		a.ask("iam:PassRole", fmt.Sprintf("arn:%s:iam::%s:role/node", a.partition, account), map[string]any{"iam:PassedToService": a.passedTo()})
	default:
		a.ask("ec2:"+action, "*", nil)
	}
}

// denied are those that the policy engine does not find allowed.
func denied(t *testing.T, policy string, questions []string) []string {
	t.Helper()
	python := filepath.Join(motoHome(t), "bin", "python")
	file := filepath.Join(t.TempDir(), "policy.json")
	require.NoError(t, os.WriteFile(file, []byte(policy), 0o600))
	cmd := exec.CommandContext(t.Context(), python, "testdata/policy.py", file)
	cmd.Stdin = strings.NewReader(strings.Join(questions, "\n") + "\n")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, errs.String())
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// Whatever the provider asks for while everything goes wrong is allowed by the policy, in each partition.
func TestPolicyAllowsTheFaultRun(t *testing.T) {
	if testing.Short() {
		t.Skip("asks Principal Mapper of every call")
	}
	t.Parallel()
	motoHome(t)
	for region, partition := range map[string]string{"us-east-1": "aws", "us-gov-west-1": "aws-us-gov", "cn-north-1": "aws-cn"} {
		t.Run(partition, func(t *testing.T) {
			var a *authorizer
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, awstest.Config{Region: region, ProfileLag: 5 * time.Second})
				a = &authorizer{cloud: f.cloud, partition: partition, region: region, asked: map[string]bool{}}
				p := f.provider(t, func(o *aws.Options) {
					o.HTTPClient, o.StatusChecks, o.ZonalShift = &http.Client{Transport: a}, true, true
				})
				f.cloud.InterruptSpot("i-0")
				f.cloud.SetFault(mishaps(faultSeed))
				var claims []cloudprovider.NodeClaim
				for i := range 6 {
					for _, kind := range []string{"spot", "on-demand"} {
						claims = append(claims, f.ask(t, p, fmt.Sprint(kind, i), "karpenter.sh/capacity-type in ("+kind+")"))
					}
				}
				for range 40 {
					for i, r := range p.CreateMany(t.Context(), claims) {
						if r.Err == nil && i%3 == 0 {
							register(t, p, r.Launch.Instance)
						}
					}
					time.Sleep(5 * time.Second)
				}
				_, _, _ = p.Interruptions(t.Context(), "") // some fail: they are asked for all the same
				for range 5 {
					_, _ = p.List(t.Context())
				}
				f.cloud.SetFault(nil)
				list, err := p.List(t.Context())
				require.NoError(t, err)
				require.Len(t, list, 12)
				for _, i := range list {
					require.NoError(t, p.Delete(t.Context(), i.ID))
				}
				time.Sleep(2 * time.Hour)
				_, err = p.Maintain(t.Context(), time.Hour)
				require.NoError(t, err)
			})
			var questions []string
			for q := range a.asked {
				questions = append(questions, q)
			}
			slices.Sort(questions)
			assert.Greater(t, len(questions), 50)
			policy := policyText(t, partition, region)
			assert.Equal(t, []string{""}, denied(t, policy, questions))

			// The same calls on the machines and templates of a node group are not: these carry the cluster's tag, but not ours.
			ofNodeGroup := onNodeGroup(t, questions)
			require.Greater(t, len(ofNodeGroup), 3)
			assert.ElementsMatch(t, ofNodeGroup, denied(t, policy, ofNodeGroup))

			// And nothing else is: what others own, what does not carry the tag, and tags that are not the provider's.
			other := map[string]string{"kubernetes.io/cluster/quay": "owned"}
			a.asked = map[string]bool{}
			a.ask("ec2:TerminateInstances", a.arn("ec2", "instance/i-1"), tagged(nil, other))
			a.ask("ec2:TerminateInstances", a.arn("ec2", "instance/i-1"), tagged(nil, nil))
			a.ask("ec2:DeleteLaunchTemplate", a.arn("ec2", "launch-template/lt-1"), tagged(nil, other))
			a.ask("ec2:RunInstances", a.arn("ec2", "instance/*"), tagged(other, nil))
			a.ask("ec2:RunInstances", a.arn("ec2", "launch-template/lt-1"), tagged(nil, other))
			a.ask("ec2:CreateTags", a.arn("ec2", "instance/i-1"), tagged(map[string]string{"team": "red"}, map[string]string{"kubernetes.io/cluster/harbour": "owned"}))
			a.ask("ec2:CreateTags", a.arn("ec2", "instance/i-1"), tagged(map[string]string{"Name": "x"}, other))
			a.ask("iam:PassRole", fmt.Sprintf("arn:%s:iam::%s:role/node", partition, account), map[string]any{"iam:PassedToService": "lambda.amazonaws.com"})
			a.ask("iam:PassRole", fmt.Sprintf("arn:%s:iam::%s:role/admin", partition, account), map[string]any{"iam:PassedToService": a.passedTo()})
			a.ask("iam:DeleteInstanceProfile", fmt.Sprintf("arn:%s:iam::%s:instance-profile/theirs", partition, account), nil)
			a.ask("ssm:GetParameters", fmt.Sprintf("arn:%s:ssm:%s:%s:parameter/secret", partition, region, account), nil)
			a.ask("sqs:ReceiveMessage", a.arn("sqs", "quay"), nil)
			a.ask("iam:CreateRole", fmt.Sprintf("arn:%s:iam::%s:role/x", partition, account), nil)
			questions = nil
			for q := range a.asked {
				questions = append(questions, q)
			}
			assert.ElementsMatch(t, questions, denied(t, policy, questions))
		})
	}
}

// onNodeGroup are the questions about what is there already, as if it belonged to a node group of the cluster.
func onNodeGroup(t *testing.T, questions []string) []string {
	t.Helper()
	var out []string
	for _, q := range questions {
		var of map[string]any
		require.NoError(t, json.Unmarshal([]byte(q), &of))
		context, _ := of["context"].(map[string]any)
		changes := slices.Contains([]string{"ec2:TerminateInstances", "ec2:DeleteLaunchTemplate", "ec2:CreateTags"}, of["action"].(string))
		if _, made := context["ec2:CreateAction"]; made || !changes {
			continue
		}
		for key := range context {
			if strings.HasPrefix(key, "aws:ResourceTag/") {
				delete(context, key)
			}
		}
		context["aws:ResourceTag/kubernetes.io/cluster/harbour"], context["aws:ResourceTag/eks:nodegroup-name"] = "owned", "system"
		text, err := json.Marshal(of)
		require.NoError(t, err)
		out = append(out, string(text))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// The two descriptions of the infrastructure say the same, and what the policy file says.
func TestInfrastructureFilesAgree(t *testing.T) {
	cf, err := os.ReadFile("infrastructure/cloudformation.yaml")
	require.NoError(t, err)
	tf, err := os.ReadFile("infrastructure/main.tf")
	require.NoError(t, err)
	policy, err := os.ReadFile("infrastructure/policy.json")
	require.NoError(t, err)
	var root yaml.Node
	require.NoError(t, yaml.Unmarshal(cf, &root))
	at := func(n *yaml.Node, path ...string) *yaml.Node {
		for _, key := range path {
			i := slices.IndexFunc(n.Content, func(c *yaml.Node) bool { return c.Value == key })
			require.GreaterOrEqual(t, i, 0, "%v", path)
			n = n.Content[i+1]
		}
		return n
	}
	inline := at(root.Content[0], "Resources", "Policy", "Properties", "PolicyDocument").Content[0].Value
	inline = strings.NewReplacer("${AWS::Partition}", "${Partition}", "${AWS::Region}", "${Region}", "${AWS::AccountId}", "${Account}").Replace(inline)
	assert.Equal(t, strings.TrimSpace(string(policy)), strings.TrimSpace(inline))
	assert.Contains(t, string(tf), `templatefile("${path.module}/policy.json"`)
	for event, source := range map[string]string{
		"EC2 Spot Instance Interruption Warning": "aws.ec2", "EC2 Instance Rebalance Recommendation": "aws.ec2", "EC2 Instance State-change Notification": "aws.ec2",
		"EC2 Capacity Reservation Instance Interruption Warning": "aws.ec2", "AWS Health Event": "aws.health",
	} {
		assert.Contains(t, string(cf), fmt.Sprintf("{source: [%s], detail-type: [%s]}", source, event))
		assert.Contains(t, string(tf), fmt.Sprintf("{ source = [%q], detail-type = [%q] }", source, event))
	}
	// Windows nodes join only with a role that says so.
	assert.Equal(t, "EC2_LINUX EC2_WINDOWS", at(root.Content[0], "Parameters", "NodeType", "AllowedValues").Content[0].Value+" "+at(root.Content[0], "Parameters", "NodeType", "AllowedValues").Content[1].Value)
	assert.Equal(t, "NodeType", at(root.Content[0], "Resources", "Joining", "Properties", "Type").Value)
	assert.Regexp(t, `type\s+= var\.node_type`, string(tf))
	assert.Contains(t, string(tf), `contains(["EC2_LINUX", "EC2_WINDOWS"], var.node_type)`)
	// No more than what is needed: machines only pull images, only pods of this cluster are the controller, and every resource is named,
	// except where EC2 knows none.
	for name, text := range map[string]string{"cloudformation.yaml": string(cf), "main.tf": string(tf)} {
		assert.Contains(t, text, "AmazonEC2ContainerRegistryPullOnly", name)
		assert.NotContains(t, text, "AmazonEC2ContainerRegistryReadOnly", name)
		assert.Contains(t, text, "aws:SourceAccount", name)
		assert.Regexp(t, `aws:SourceArn.*:cluster/\$\{(Cluster|var\.cluster)\}`, text, name)
	}
	var statements struct {
		Statement []struct {
			Sid              string
			Action, Resource actions
			Condition        map[string]map[string]actions
		}
	}
	require.NoError(t, json.Unmarshal(policy, &statements))
	for _, s := range statements.Statement {
		for _, r := range s.Resource {
			assert.NotContains(t, r, "*/*", s.Sid)
			assert.False(t, r == "*" && s.Sid != "Read", s.Sid)
		}
		for _, a := range s.Action {
			if slices.Contains([]string{"ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"}, a) || s.Sid == "SayWhichMachineIsWhose" {
				assert.Equal(t, actions{"${Cluster}"}, s.Condition["StringEquals"]["aws:ResourceTag/joinery/cluster"], "%s: node groups carry the cluster's tag, too", s.Sid)
			}
		}
	}
	for name, text := range map[string][]byte{"cloudformation.yaml": cf, "main.tf": tf, "policy.json": policy} {
		assert.NotContains(t, string(text), "arn:aws", "%s: there are other partitions", name)
	}
}

// register says that a machine has joined.
func register(t *testing.T, p *aws.Provider, i cloudprovider.Instance) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + i.Claim}, Spec: corev1.NodeSpec{ProviderID: i.ID}, Status: corev1.NodeStatus{Capacity: i.Capacity}}
	_ = p.Registered(t.Context(), i.ID, node) // what fails is asked for all the same
}
