package userdata_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/discovery"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/userdata"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

var update = flag.Bool("update", false, "write the golden files anew")

func cluster() discovery.Cluster {
	return discovery.Cluster{Name: "harbour", Endpoint: "https://api.harbour.example.com", CA: "Y2E=", ServiceCIDR: "10.100.0.0/16"}
}

func ptr[T any](v T) *T { return &v }

func full() userdata.Node {
	return userdata.Node{
		Labels: map[string]string{
			"team": "red", "karpenter.sh/nodepool": "general", "node-restriction.kubernetes.io/x": "no", "node.kubernetes.io/speed": "fast",
		},
		Taints: []corev1.Taint{
			{Key: "example.com/start", Effect: corev1.TaintEffectNoExecute},
			{Key: "dedicated", Value: "batch", Effect: corev1.TaintEffectNoSchedule},
		},
		Kubelet: &nodeclass.Kubelet{
			ClusterDNS: []string{"10.100.0.10"}, MaxPods: ptr(int32(42)), PodsPerCore: ptr(int32(4)),
			KubeReserved:   corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("500Mi")},
			SystemReserved: corev1.ResourceList{"cpu": resource.MustParse("50m")},
			EvictionHard:   map[string]string{"memory.available": "5%", "nodefs.available": "10%"},
			EvictionSoft:   map[string]string{"memory.available": "8%"}, EvictionSoftGracePeriod: map[string]string{"memory.available": "1m30s"},
			EvictionMaxPodGracePeriod: ptr(int32(60)), ImageGCHighThresholdPercent: ptr(int32(85)), ImageGCLowThresholdPercent: ptr(int32(80)),
			CPUCFSQuota: ptr(false),
		},
		RAID0: true,
	}
}

const (
	ownScript  = "#!/bin/bash\necho before\n"
	ownArchive = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nContent-Type: text/x-shellscript; charset=\"us-ascii\"\n\n#!/bin/bash\necho one\n\n--B\nContent-Type: text/cloud-config; charset=\"us-ascii\"\n\nruncmd: [ls]\n--B--\n"
	ownConfig  = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      shutdownGracePeriod: 30s\n"
	ownTOML    = "[settings.host-containers.admin]\nenabled = true\n[settings.kubernetes]\nfuture-setting = 7\n[settings.kubernetes.node-labels]\nown = 'yes'\n[settings.kubernetes.node-taints]\nold = ['x:NoSchedule']\n"
)

type goldenCase struct {
	name   string
	family ec2.Family
	node   userdata.Node
	ipv6   bool
}

func goldenCases() []goldenCase {
	own := func(text string) userdata.Node { return userdata.Node{Own: text} }
	cases := []goldenCase{
		{"al2-own-script", ec2.AL2, own(ownScript), false},
		{"al2-own-archive", ec2.AL2, own(ownArchive), false},
		{"al2-ipv6", ec2.AL2, userdata.Node{}, true},
		{"al2023-own-config", ec2.AL2023, own(ownConfig), false},
		{"al2023-own-archive", ec2.AL2023, own(ownArchive), false},
		{"al2023-own-script", ec2.AL2023, own(ownScript), false},
		{"bottlerocket-own", ec2.Bottlerocket, func() userdata.Node { n := full(); n.Own = ownTOML; return n }(), false},
		{"windows-own", ec2.Windows2022, own("<powershell>\r\nWrite-Host before\r\n</powershell>"), false},
		{"custom", ec2.Custom, own("anything ${goes}\r\n"), false},
	}
	for _, f := range []ec2.Family{ec2.AL2, ec2.AL2023, ec2.Bottlerocket, ec2.Ubuntu, ec2.Windows2019, ec2.Windows2022, ec2.Windows2025} {
		cases = append(cases, goldenCase{strings.ToLower(string(f)) + "-plain", f, userdata.Node{}, false}, goldenCase{strings.ToLower(string(f)) + "-full", f, full(), false})
	}
	return cases
}

// Settings of the kubelet that are only passed on reach nodeadm, which takes any, as they are; no other image has a place for them. Those
// that Joinery writes itself stand.
func TestFurtherKubeletSettings(t *testing.T) {
	n := userdata.Node{
		Taints: []corev1.Taint{{Key: "own", Effect: corev1.TaintEffectNoSchedule}},
		Kubelet: &nodeclass.Kubelet{Further: map[string]json.RawMessage{
			"containerLogMaxSize": json.RawMessage(`"50Mi"`), "featureGates": json.RawMessage(`{"A":true}`), "registerWithTaints": json.RawMessage(`[]`),
		}},
	}
	for _, f := range []ec2.Family{ec2.AL2, ec2.AL2023, ec2.Bottlerocket, ec2.Ubuntu, ec2.Windows2022, ec2.Custom} {
		have, err := userdata.Render(f, cluster(), n)
		require.NoError(t, err)
		if f != ec2.AL2023 {
			assert.NotContains(t, have, "50Mi", f)
			continue
		}
		assert.Contains(t, have, "    config:\n      containerLogMaxSize: 50Mi\n      featureGates:\n        A: true\n      registerWithTaints:\n      - effect: NoSchedule\n        key: own\n")
	}
}

func TestGolden(t *testing.T) {
	for _, c := range goldenCases() {
		t.Run(c.name, func(t *testing.T) {
			on := cluster()
			on.IPv6 = c.ipv6
			have, err := userdata.Render(c.family, on, c.node)
			require.NoError(t, err)
			file := filepath.Join("testdata", c.name+".golden")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(file, []byte(have), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), have)
			for range 20 {
				again, err := userdata.Render(c.family, on, c.node)
				require.NoError(t, err)
				require.Equal(t, have, again, "maps have no order")
			}
		})
	}
}

type piece struct{ contentType, body string }

// pieces takes user data apart as cloud-init does.
func pieces(t *testing.T, text string) []piece {
	t.Helper()
	message, err := mail.ReadMessage(strings.NewReader(text))
	require.NoError(t, err)
	kind, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/mixed", kind)
	var out []piece
	for reader := multipart.NewReader(message.Body, params["boundary"]); ; {
		p, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		body, err := io.ReadAll(p)
		require.NoError(t, err)
		out = append(out, piece{p.Header.Get("Content-Type"), string(body)})
	}
}

func render(t *testing.T, family ec2.Family, node userdata.Node) string {
	t.Helper()
	text, err := userdata.Render(family, cluster(), node)
	require.NoError(t, err)
	return text
}

// Independent parsers must find what was put in.
func TestShellIsReadBack(t *testing.T) {
	for _, family := range []ec2.Family{ec2.AL2, ec2.Ubuntu} {
		node := full()
		node.Own = ownArchive
		got := pieces(t, render(t, family, node))
		require.Len(t, got, 3)
		assert.Contains(t, got[0].body, "echo one")
		assert.Equal(t, `text/cloud-config; charset="us-ascii"`, got[1].contentType)
		ours := got[2].body
		assert.True(t, strings.HasPrefix(ours, "#!/bin/bash\n"), "ours is last")
		for _, want := range []string{
			"'harbour'", "--apiserver-endpoint 'https://api.harbour.example.com'", "--b64-cluster-ca 'Y2E='", "--dns-cluster-ip '10.100.0.10'",
			"--use-max-pods false", "--local-disks raid0",
			"--node-labels=karpenter.sh/nodepool=general,node.kubernetes.io/speed=fast,team=red", "--max-pods=42", "--pods-per-core=4",
			"--register-with-taints=dedicated=batch:NoSchedule,example.com/start=:NoExecute",
			"--kube-reserved=cpu=100m,memory=500Mi", "--system-reserved=cpu=50m", "--eviction-hard=memory.available<5%,nodefs.available<10%",
			"--eviction-soft=memory.available<8%", "--eviction-soft-grace-period=memory.available=1m30s", "--eviction-max-pod-grace-period=60",
			"--image-gc-high-threshold=85", "--image-gc-low-threshold=80", "--cpu-cfs-quota=false",
		} {
			assert.Contains(t, ours, want)
		}
		assert.NotContains(t, ours, "node-restriction", "an API server would refuse it")
	}
}

func TestNodeConfigIsReadBack(t *testing.T) {
	node := full()
	node.Own = ownConfig
	got := pieces(t, render(t, ec2.AL2023, node))
	require.Len(t, got, 2)
	assert.Equal(t, "application/node.eks.aws", got[0].contentType)
	assert.Contains(t, got[0].body, "shutdownGracePeriod")
	assert.Equal(t, "application/node.eks.aws", got[1].contentType)
	var config struct {
		APIVersion, Kind string
		Spec             struct {
			Cluster  map[string]string
			Instance struct {
				LocalStorage struct{ Strategy string } `yaml:"localStorage"`
			}
			Kubelet struct {
				Flags  []string
				Config map[string]any
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(got[1].body), &config))
	assert.Equal(t, "NodeConfig", config.Kind)
	assert.Equal(t, map[string]string{"name": "harbour", "apiServerEndpoint": "https://api.harbour.example.com", "certificateAuthority": "Y2E=", "cidr": "10.100.0.0/16"}, config.Spec.Cluster)
	assert.Equal(t, "RAID0", config.Spec.Instance.LocalStorage.Strategy)
	assert.Equal(t, []string{"--node-labels=karpenter.sh/nodepool=general,node.kubernetes.io/speed=fast,team=red"}, config.Spec.Kubelet.Flags)
	assert.Equal(t, map[string]any{
		"clusterDNS": []any{"10.100.0.10"}, "maxPods": 42, "podsPerCore": 4,
		"kubeReserved": map[string]any{"cpu": "100m", "memory": "500Mi"}, "systemReserved": map[string]any{"cpu": "50m"},
		"evictionHard": map[string]any{"memory.available": "5%", "nodefs.available": "10%"}, "evictionSoft": map[string]any{"memory.available": "8%"},
		"evictionSoftGracePeriod": map[string]any{"memory.available": "1m30s"}, "evictionMaxPodGracePeriod": 60,
		"imageGCHighThresholdPercent": 85, "imageGCLowThresholdPercent": 80, "cpuCFSQuota": false,
		"registerWithTaints": []any{
			map[string]any{"key": "dedicated", "value": "batch", "effect": "NoSchedule"},
			map[string]any{"key": "example.com/start", "effect": "NoExecute"},
		},
	}, config.Spec.Kubelet.Config)
}

func TestSettingsAreReadBack(t *testing.T) {
	node := full()
	node.Own = ownTOML
	var got struct {
		Settings struct {
			Kubernetes        map[string]any
			HostContainers    map[string]map[string]any `toml:"host-containers"`
			BootstrapCommands map[string]struct {
				Commands  [][]string
				Essential bool
				Mode      string
			} `toml:"bootstrap-commands"`
		}
	}
	_, err := toml.Decode(render(t, ec2.Bottlerocket, node), &got)
	require.NoError(t, err)
	assert.Equal(t, true, got.Settings.HostContainers["admin"]["enabled"], "what we do not know stays")
	k := got.Settings.Kubernetes
	assert.Equal(t, int64(7), k["future-setting"])
	assert.Equal(t, "harbour", k["cluster-name"])
	assert.Equal(t, "https://api.harbour.example.com", k["api-server"])
	assert.Equal(t, "Y2E=", k["cluster-certificate"])
	assert.Equal(t, "10.100.0.10", k["cluster-dns-ip"])
	assert.Equal(t, int64(42), k["max-pods"])
	assert.Equal(t, "85", k["image-gc-high-threshold-percent"])
	assert.Equal(t, false, k["cpu-cfs-quota-enforced"])
	assert.Equal(t, map[string]any{"own": "yes", "team": "red", "karpenter.sh/nodepool": "general", "node.kubernetes.io/speed": "fast"}, k["node-labels"])
	assert.Equal(t, map[string]any{"dedicated": []any{"batch:NoSchedule"}, "example.com/start": []any{":NoExecute"}}, k["node-taints"], "replaced as a whole")
	assert.Equal(t, map[string]any{"memory.available": "5%", "nodefs.available": "10%"}, k["eviction-hard"])
	mount := got.Settings.BootstrapCommands["000-mount-instance-storage"]
	assert.True(t, mount.Essential)
	assert.Equal(t, "always", mount.Mode)
	assert.Equal(t, []string{"apiclient", "ephemeral-storage", "init"}, mount.Commands[0])
}

func TestWindows(t *testing.T) {
	node := full()
	node.Own = "Write-Host 'before'"
	text := render(t, ec2.Windows2025, node)
	assert.Equal(t, 1, strings.Count(text, "<powershell>"))
	assert.Less(t, strings.Index(text, "Write-Host"), strings.Index(text, "Start-EKSBootstrap.ps1"))
	assert.Contains(t, text, "-EKSClusterName 'harbour' -APIServerEndpoint 'https://api.harbour.example.com' -Base64ClusterCA 'Y2E='")
	assert.Contains(t, text, "--max-pods=42")
	assert.Contains(t, text, "-DNSClusterIP '10.100.0.10'")
}

func TestCustomIsVerbatim(t *testing.T) {
	node := full()
	node.Own = "\x00 whatever\r\n"
	assert.Equal(t, node.Own, render(t, ec2.Custom, node))
}

// A part that has a line like our boundary must not end the archive.
func TestBoundaryClash(t *testing.T) {
	got := pieces(t, render(t, ec2.AL2, userdata.Node{Own: "#!/bin/sh\necho a\n--//\necho b\n--///\n"}))
	require.Len(t, got, 2)
	assert.Contains(t, got[0].body, "echo b")
}

func kubelet(k nodeclass.Kubelet) userdata.Node { return userdata.Node{Kubelet: &k} }

func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		family ec2.Family
		c      discovery.Cluster
		n      userdata.Node
		want   []string
	}{
		"cluster": {ec2.AL2023, discovery.Cluster{}, userdata.Node{}, []string{"cluster.name: missing", "cluster.endpoint: missing", "cluster.ca: missing", "cluster.serviceCIDR: missing"}},
		"shell":   {ec2.AL2, discovery.Cluster{Name: "a'; reboot", Endpoint: "https://x"}, userdata.Node{}, []string{"cluster.name"}},
		"label":   {ec2.AL2, cluster(), userdata.Node{Labels: map[string]string{"a": "x y", "b": "'"}}, []string{`labels["a"]`, `labels["b"]`}},
		"taint":   {ec2.AL2, cluster(), userdata.Node{Taints: []corev1.Taint{{Key: "$(reboot)", Effect: "Sometimes"}}}, []string{"taints[0]", "want effect"}},
		"toml":    {ec2.Bottlerocket, cluster(), userdata.Node{Own: "[settings]\nsecret = "}, []string{"not TOML: line 2"}},
		"table":   {ec2.Bottlerocket, cluster(), userdata.Node{Own: "settings = 'secret'"}, []string{`"settings" is not a table`}},
		"archive": {ec2.AL2, cluster(), userdata.Node{Own: "Content-Type: text/plain\n\nsecret"}, []string{"multipart/mixed"}},
		"family":  {"AL3", cluster(), userdata.Node{}, []string{"AL2"}},
		"dns":     {ec2.Windows2022, cluster(), kubelet(nodeclass.Kubelet{ClusterDNS: []string{"10.0.0.10\u2019; reboot"}}), []string{"clusterDNS", "want an IP address"}},
		"hard":    {ec2.Windows2025, cluster(), kubelet(nodeclass.Kubelet{EvictionHard: map[string]string{"memory.available": "1Gi\u2018; reboot"}}), []string{"evictionHard"}},
		"soft":    {ec2.AL2, cluster(), kubelet(nodeclass.Kubelet{EvictionSoft: map[string]string{"memory.available": "$(reboot)"}}), []string{"evictionSoft"}},
		"grace":   {ec2.AL2023, cluster(), kubelet(nodeclass.Kubelet{EvictionSoftGracePeriod: map[string]string{"a b": "1m"}}), []string{"evictionSoftGracePeriod"}},
		"end":     {ec2.Windows2019, cluster(), userdata.Node{Own: "echo secret\n</PowerShell>\necho"}, []string{"<powershell>"}},
		"blocks":  {ec2.Windows2022, cluster(), userdata.Node{Own: "<powershell>echo secret</powershell><powershell>echo</powershell>"}, []string{"<powershell>"}},
		"persist": {ec2.Windows2022, cluster(), userdata.Node{Own: "<powershell>echo secret</powershell>\n<persist>true</persist>"}, []string{"one block of PowerShell"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := userdata.Render(test.family, test.c, test.n)
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "secret", "user data is not for logs")
		})
	}
}

func TestSize(t *testing.T) {
	_, err := userdata.Render(ec2.Custom, discovery.Cluster{}, userdata.Node{Own: strings.Repeat("x", userdata.MaxBytes)})
	require.NoError(t, err)
	_, err = userdata.Render(ec2.AL2, cluster(), userdata.Node{Own: strings.Repeat("x", userdata.MaxBytes)})
	require.ErrorContains(t, err, " bytes, and EC2 takes at most 16384")
}

func TestRegistrable(t *testing.T) {
	for key, want := range map[string]bool{
		"team": true, "karpenter.sh/nodepool": true, "example.com/x": true, "kubernetes.io/x": false, "foo.kubernetes.io/x": false, "k8s.io/x": false,
		"kubernetes.io/arch": true, "topology.kubernetes.io/zone": true, "node.kubernetes.io/x": true, "a.node.kubernetes.io/x": true,
		"kubelet.kubernetes.io/x": true, "node-restriction.kubernetes.io/x": false, "topology.k8s.aws/zone-id": true, "mykubernetes.io/x": true,
	} {
		assert.Equal(t, want, userdata.Registrable(key), key)
	}
}

// What independent parsers read must not depend on what the user wrote beside it.
func FuzzRender(f *testing.F) {
	for _, own := range []string{"", ownScript, ownArchive, ownConfig, ownTOML, "--//\n", "Content-Type: multipart/mixed; boundary=a\n\n--a\n\nx\n--a--", "\r\n", "a: [", "settings = 1"} {
		f.Add(own, "harbour")
	}
	f.Fuzz(func(t *testing.T, own, name string) {
		c := cluster()
		c.Name = name
		for _, family := range []ec2.Family{ec2.AL2, ec2.AL2023} {
			text, err := userdata.Render(family, c, userdata.Node{Own: own})
			if err != nil {
				continue
			}
			got := pieces(t, text)
			require.NotEmpty(t, got)
			last := got[len(got)-1].body
			require.Contains(t, last, "https://api.harbour.example.com", "%q", family)
		}
		if text, err := userdata.Render(ec2.Bottlerocket, c, userdata.Node{Own: own}); err == nil {
			var got struct {
				Settings struct{ Kubernetes map[string]any }
			}
			_, err := toml.Decode(text, &got)
			require.NoError(t, err)
			require.Equal(t, name, got.Settings.Kubernetes["cluster-name"])
		}
	})
}

func ExampleRender() {
	text, err := userdata.Render(ec2.AL2, discovery.Cluster{Name: "harbour", Endpoint: "https://api.example.com"}, userdata.Node{Labels: map[string]string{"team": "red"}})
	fmt.Print(text, err)
	// Output:
	// MIME-Version: 1.0
	// Content-Type: multipart/mixed; boundary="//"
	//
	// --//
	// Content-Type: text/x-shellscript; charset="us-ascii"
	//
	// #!/bin/bash
	// set -o errexit -o nounset -o pipefail
	// /etc/eks/bootstrap.sh 'harbour' --apiserver-endpoint 'https://api.example.com' --kubelet-extra-args '--node-labels=team=red'
	// --//--
	// <nil>
}

func ExampleRegistrable() {
	fmt.Println(userdata.Registrable("team"), userdata.Registrable("node-restriction.kubernetes.io/team"))
	// Output: true false
}

// Every family finds the cluster's DNS where EKS puts it, the tenth address of the services' network, and not where an image guesses it.
func TestDNSOfTheServicesNetwork(t *testing.T) {
	for cidr, want := range map[string]string{"10.200.0.0/16": "10.200.0.10", "192.168.16.0/20": "192.168.16.10", "fd00:1234::/108": "fd00:1234::a"} {
		for _, family := range []ec2.Family{ec2.AL2, ec2.Ubuntu, ec2.Windows2019, ec2.Windows2022, ec2.Windows2025} {
			c := cluster()
			c.ServiceCIDR, c.IPv6 = cidr, strings.Contains(cidr, ":")
			text, err := userdata.Render(family, c, userdata.Node{})
			require.NoError(t, err)
			assert.Regexp(t, `(--dns-cluster-ip|-DNSClusterIP) '`+regexp.QuoteMeta(want)+`'`, text, "%s %s", family, cidr)
			own, err := userdata.Render(family, c, userdata.Node{Kubelet: &nodeclass.Kubelet{ClusterDNS: []string{"10.0.0.53"}}})
			require.NoError(t, err)
			assert.NotContains(t, own, want, "the class's own choice holds")
		}
	}
}

// Bottlerocket from 1.46 on knows which directories belong on local disks, those of its snapshotters among them; older ones want names.
func TestBottlerocketBindsAllDirectories(t *testing.T) {
	for version, named := range map[string]bool{"latest": false, "v1.46.0": false, "1.61.2": false, "v2.0.0": false, "v1.45.9": true, "1.9.0": true, "": true, "own": true} {
		text := render(t, ec2.Bottlerocket, userdata.Node{RAID0: true, ImageVersion: version})
		assert.Contains(t, text, "['apiclient', 'ephemeral-storage', 'bind'", version)
		assert.Equal(t, named, strings.Contains(text, "--dirs"), version)
	}
}
