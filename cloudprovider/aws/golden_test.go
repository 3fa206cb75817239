package aws_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/record"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
)

var update = flag.Bool("update", false, "rewrite the golden requests; commit only what you understand")

// bought is one case: a class, a claim, and what is sent for it.
type bought struct {
	name   string
	class  func(c *nodeclass.NodeClass)
	claim  func(c *cloudprovider.NodeClaim)
	match  string
	ipv6   bool
	global map[string]string
}

func yes() *bool { b := true; return &b }

func goldens() []bought {
	family := func(f ec2.Family, alias string) func(*nodeclass.NodeClass) {
		return func(c *nodeclass.NodeClass) { c.Family, c.AMIs = f, []nodeclass.Term{{Alias: alias}} }
	}
	const spot = "karpenter.sh/capacity-type in (spot), node.kubernetes.io/instance-type in (m5.large, m6a.large, m6g.large)"
	return []bought{
		{name: "al2023", class: func(*nodeclass.NodeClass) {}},
		{name: "al2", class: family(ec2.AL2, "al2@latest")},
		{name: "bottlerocket", class: family(ec2.Bottlerocket, "bottlerocket@latest")},
		{name: "windows2022", class: family(ec2.Windows2022, "windows2022@latest")},
		{name: "ubuntu", class: func(c *nodeclass.NodeClass) { c.Family, c.AMIs = ec2.Ubuntu, nil }},
		{name: "custom", class: func(c *nodeclass.NodeClass) {
			c.Family, c.AMIs, c.UserData = ec2.Custom, byTag("cluster", "harbour"), "#!/bin/sh\necho mine\n"
		}},
		{name: "spot", class: func(*nodeclass.NodeClass) {}, match: spot},
		{name: "disks", class: func(c *nodeclass.NodeClass) {
			c.BlockDevices = []nodeclass.BlockDevice{
				{Device: "/dev/xvda", Bytes: 50<<30 + 1, Type: "gp3", IOPS: 4000, Throughput: 250, InitializationRate: 200, KMSKeyID: "arn:aws:kms:us-east-1:111122223333:key/1", Encrypted: yes(), DeleteOnTermination: yes()},
				{Device: "/dev/xvdb", Snapshot: "snap-1", Type: "io2", IOPS: 100},
			}
		}},
		{name: "metadata", class: func(c *nodeclass.NodeClass) {
			c.Metadata = nodeclass.MetadataOptions{Endpoint: "enabled", IPv6: "enabled", HopLimit: 2, Tokens: "optional"}
			c.DetailedMonitoring, c.NestedVirtualization, c.Context = true, "enabled", "context-1"
		}},
		{name: "tags", class: func(c *nodeclass.NodeClass) {
			c.Tags = map[string]string{"team": "shop", "cost-center": "7"}
			c.Role, c.InstanceProfile = "", "own-profile"
		}},
		{name: "ipv6", class: func(*nodeclass.NodeClass) {}, ipv6: true},
		{name: "ipv6-prefixes", class: func(c *nodeclass.NodeClass) { n := int32(2); c.IPPrefixCount = &n }, ipv6: true},
		{name: "interruptible", class: func(c *nodeclass.NodeClass) { c.CapacityReservations = byTag("kind", "interruptible") }, match: "karpenter.sh/capacity-type in (reserved)"},
		{name: "network", class: func(c *nodeclass.NodeClass) {
			n := int32(2)
			c.AssociatePublicIP, c.IPPrefixCount, c.ConnectionTracking = yes(), &n, &nodeclass.ConnectionTracking{TCPEstablished: 350, UDPStream: 180, UDP: 30}
		}},
		{name: "interfaces", class: func(c *nodeclass.NodeClass) {
			c.NetworkInterfaces = []nodeclass.NetworkInterface{{Type: "interface"}, {Card: 1, Device: 1, Type: "efa-only"}}
			c.ConnectionTracking = &nodeclass.ConnectionTracking{UDP: 30}
		}, match: "node.kubernetes.io/instance-type in (p4d.24xlarge), karpenter.sh/capacity-type in (on-demand)"},
		{name: "efa", class: func(*nodeclass.NodeClass) {}, match: "node.kubernetes.io/instance-type in (p4d.24xlarge), karpenter.sh/capacity-type in (on-demand)", claim: func(c *cloudprovider.NodeClaim) {
			c.Requests = corev1.ResourceList{ec2.ResourceEFA: resource.MustParse("1")}
		}},
		{name: "enclave", class: func(*nodeclass.NodeClass) {}, match: "node.kubernetes.io/instance-type in (m6a.xlarge), karpenter.sh/capacity-type in (on-demand)", claim: func(c *cloudprovider.NodeClaim) {
			c.Requests = corev1.ResourceList{"eks.amazonaws.com/nitro-sandbox": resource.MustParse("1")}
		}},
		{name: "reserved", class: func(c *nodeclass.NodeClass) { c.CapacityReservations = byTag("kind", "open") }, match: "karpenter.sh/capacity-type in (reserved)"},
		{name: "block", class: func(c *nodeclass.NodeClass) { c.CapacityReservations = byTag("kind", "block") }, match: "karpenter.sh/capacity-type in (reserved)"},
		{name: "placement", class: func(c *nodeclass.NodeClass) { c.PlacementGroup = &nodeclass.PlacementGroup{Name: "racks"} }, claim: func(c *cloudprovider.NodeClaim) {
			c.Requirements = requirements.MustParse("karpenter.k8s.aws/placement-group-partition in (3)")
		}},
		{name: "dedicated", class: func(*nodeclass.NodeClass) {}, claim: func(c *cloudprovider.NodeClaim) {
			c.Requirements = requirements.MustParse("karpenter.k8s.aws/instance-tenancy in (dedicated)")
		}},
		{name: "labels-and-taints", class: func(c *nodeclass.NodeClass) {
			most := int32(40)
			c.Kubelet = &nodeclass.Kubelet{MaxPods: &most, EvictionHard: map[string]string{"memory.available": "5%"}}
			c.RAID0 = true
		}, claim: func(c *cloudprovider.NodeClaim) {
			c.Labels = map[string]string{"team": "shop"}
			c.Taints = []corev1.Taint{{Key: "dedicated", Value: "shop", Effect: corev1.TaintEffectNoSchedule}}
			c.StartupTaints = []corev1.Taint{{Key: "example.com/agent", Effect: corev1.TaintEffectNoExecute}}
		}},
		{name: "eni-density", class: func(*nodeclass.NodeClass) {}, global: map[string]string{"aws.enableENILimitedPodDensity": "false"}},
	}
}

// recordTag finds the tags that hold records, which are compressed.
var recordTag = regexp.MustCompile(`(?m)^(TagSpecification\.\d+\.Tag\.\d+)\.Key=joinery/claims-\d+$`)

// What arrives at EC2 for each family and feature: parameters of the query protocol, as another program took them apart.
func TestGoldenRequests(t *testing.T) {
	for _, g := range goldens() {
		t.Run(g.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, awstest.Config{Version: map[string]string{"al2": "1.32"}[g.name], Types: []string{"m5.large", "m6a.large", "m6g.large", "m6a.xlarge", "p4d.24xlarge"}})
				f.cloud.AddProfile("own-profile", "node")
				f.cloud.Put(awstest.Reservation{ID: "cr-1", Type: "m5.large", Zone: "us-east-1a", Count: 2, Tags: map[string]string{"kind": "open"}})
				f.cloud.Nest("m5.large")
				f.cloud.Put(awstest.Reservation{ID: "cr-2", Type: "p4d.24xlarge", Zone: "us-east-1a", Count: 2, Block: true, Tags: map[string]string{"kind": "block"}})
				f.cloud.Put(awstest.Reservation{ID: "cr-3", Type: "m5.large", Zone: "us-east-1a", Count: 2, Interruptible: true, Tags: map[string]string{"kind": "interruptible"}})
				f.cloud.Put(awstest.PlacementGroup{ID: "pg-1", Name: "racks", Strategy: "partition", Partitions: 5})
				c := class()
				g.class(&c)
				p := f.provider(t, func(o *aws.Options) {
					o.Classes, o.Global = aws.FixedClasses{c}, g.global
					if g.ipv6 {
						o.Known = &aws.Cluster{Name: "harbour", Endpoint: "https://harbour.example.com", CA: "Y2E=", Version: "1.33", ServiceCIDR: "fd00::/108", IPv6: true}
					}
				})
				match := g.match
				if match == "" {
					match = onDemand
				}
				claim := f.ask(t, p, "web-1", match)
				if g.claim != nil {
					g.claim(&claim)
				}
				launch, err := p.Create(t.Context(), claim)
				require.NoError(t, err)
				assert.Equal(t, "web-1", launch.Claim)

				var b strings.Builder
				lines := func(fields map[string]string) {
					for _, k := range slices.Sorted(maps.Keys(fields)) {
						fmt.Fprintf(&b, "%s=%s\n", k, fields[k])
					}
				}
				for _, l := range f.cloud.Templates() {
					fmt.Fprintf(&b, "-- launch template %s --\n", l.Name)
					lines(l.Fields)
					b.WriteString("-- user data --\n" + l.UserData)
					checkUserData(t, c.Family, l.UserData)
				}
				for token, fields := range f.cloud.Fleets() {
					fmt.Fprintf(&b, "-- fleet %s --\n", token)
					at := b.Len()
					lines(fields)
					text := b.String()
					for _, found := range recordTag.FindAllStringSubmatch(text[at:], -1) {
						text = regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(found[1])+`\.Value=.*$`).ReplaceAllString(text, found[1]+".Value=(record)")
					}
					b.Reset()
					b.WriteString(text)
				}
				rec, ours, err := record.Read(f.cloud.Truth()[0].Tags)
				require.NoError(t, err)
				require.True(t, ours)
				assert.Equal(t, []record.Claim{{Name: "web-1", Token: "web-1-token"}}, rec.Claims)

				path := filepath.Join("testdata", g.name+".golden")
				if *update {
					require.NoError(t, os.MkdirAll("testdata", 0o755))
					require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
				}
				want, err := os.ReadFile(path)
				require.NoError(t, err)
				assert.Equal(t, string(want), b.String())
			})
		})
	}
}

// checkUserData reads it as the machine would.
func checkUserData(t *testing.T, family ec2.Family, text string) {
	t.Helper()
	lastPart := func() (kind string, body []byte) {
		m, err := mail.ReadMessage(strings.NewReader(text))
		require.NoError(t, err)
		_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
		require.NoError(t, err)
		for r := multipart.NewReader(m.Body, params["boundary"]); ; {
			part, err := r.NextPart()
			if errors.Is(err, io.EOF) {
				return kind, body
			}
			require.NoError(t, err)
			kind = part.Header.Get("Content-Type")
			body, err = io.ReadAll(part)
			require.NoError(t, err)
		}
	}
	switch {
	case family == ec2.AL2023:
		kind, body := lastPart()
		assert.Equal(t, "application/node.eks.aws", kind)
		var config struct {
			Kind string
			Spec struct{ Cluster struct{ Name string } }
		}
		require.NoError(t, yaml.Unmarshal(body, &config))
		assert.Equal(t, "NodeConfig", config.Kind)
		assert.Equal(t, "harbour", config.Spec.Cluster.Name)
	case family == ec2.AL2 || family == ec2.Ubuntu:
		kind, body := lastPart()
		assert.Contains(t, kind, "text/x-shellscript")
		assert.True(t, bytes.Contains(body, []byte("/etc/eks/bootstrap.sh 'harbour'")), "%s", body)
	case family == ec2.Bottlerocket:
		var config struct {
			Settings struct {
				Kubernetes map[string]any
			}
		}
		require.NoError(t, toml.Unmarshal([]byte(text), &config))
		assert.Equal(t, "harbour", config.Settings.Kubernetes["cluster-name"])
	case family.IsWindows():
		assert.True(t, strings.HasPrefix(text, "<powershell>") && strings.Contains(text, "-EKSClusterName"), text)
	default:
		assert.Equal(t, "#!/bin/sh\necho mine\n", text)
	}
}
