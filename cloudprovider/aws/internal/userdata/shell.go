package userdata

import (
	"fmt"
	"strings"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/discovery"
)

// bootstrapScript calls the script in EKS's AL2 and Ubuntu images. All values were checked for
// characters that have a meaning in a shell.
func bootstrapScript(c discovery.Cluster, n Node) string {
	var b strings.Builder
	b.WriteString("#!/bin/bash\nset -o errexit -o nounset -o pipefail\n")
	b.WriteString("/etc/eks/bootstrap.sh " + quote(c.Name) + " --apiserver-endpoint " + quote(c.Endpoint))
	if c.CA != "" {
		b.WriteString(" --b64-cluster-ca " + quote(c.CA))
	}
	if c.IPv6 {
		b.WriteString(" --ip-family ipv6")
		if c.ServiceCIDR != "" {
			b.WriteString(" --service-ipv6-cidr " + quote(c.ServiceCIDR))
		}
	}
	k := n.kubelet()
	// Without an address the script guesses one from the network of the machine. That is wrong in
	// clusters with a service network of their own.
	if ip := dns(c, k); ip != "" {
		b.WriteString(" --dns-cluster-ip " + quote(ip))
	}
	if k.MaxPods != nil || k.PodsPerCore != nil {
		b.WriteString(" --use-max-pods false")
	}
	if extra := flags(n); len(extra) > 0 {
		b.WriteString(" --kubelet-extra-args " + quote(strings.Join(extra, " ")))
	}
	if n.RAID0 {
		b.WriteString(" --local-disks raid0")
	}
	b.WriteString("\n")
	return b.String()
}

// quote makes one word of a shell command line.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// powershell calls the script in EKS's Windows images, after the user's own text. A tag in that
// text would end the block, and the node would not join.
func powershell(c discovery.Cluster, n Node) (string, error) {
	single := func(word string) string { return "'" + strings.ReplaceAll(word, "'", "''") + "'" }
	var b strings.Builder
	b.WriteString("<powershell>\n")
	if own := strings.TrimSpace(strings.ReplaceAll(n.Own, "\r", "")); own != "" {
		own = strings.TrimSuffix(strings.TrimPrefix(own, "<powershell>"), "</powershell>")
		for _, tag := range []string{"powershell>", "persist>", "script>"} {
			if lower := strings.ToLower(own); strings.Contains(lower, "<"+tag) || strings.Contains(lower, "</"+tag) {
				return "", fmt.Errorf("userdata: Windows user data has another tag <%s: want one block of PowerShell", tag)
			}
		}
		b.WriteString(strings.TrimSpace(own) + "\n")
	}
	b.WriteString(`$bootstrap = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"` + "\n")
	b.WriteString("& $bootstrap -EKSClusterName " + single(c.Name) + " -APIServerEndpoint " + single(c.Endpoint))
	if c.CA != "" {
		b.WriteString(" -Base64ClusterCA " + single(c.CA))
	}
	if extra := flags(n); len(extra) > 0 {
		b.WriteString(" -KubeletExtraArgs " + single(strings.Join(extra, " ")))
	}
	if ip := dns(c, n.kubelet()); ip != "" {
		b.WriteString(" -DNSClusterIP " + single(ip))
	}
	b.WriteString("\n</powershell>\n")
	return b.String(), nil
}
