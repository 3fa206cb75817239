package podcheck

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joinery-sdk/joinery/internal/strictjson"
)

// placement checks the fields that decide where a pod may run, except for its node affinity.
func (c *Checker) placement(path string, s *corev1.PodSpec) {
	if len(s.Containers) == 0 {
		c.add(path+".containers", "a pod needs at least one container")
	}
	ports := map[string]string{}
	for i := range s.InitContainers {
		at := fmt.Sprintf("%s.initContainers[%d]", path, i)
		c.container(at, &s.InitContainers[i], s, ports)
		optional(c, at+".restartPolicy", s.InitContainers[i].RestartPolicy, "Always", "OnFailure", "Never")
	}
	for i := range s.Containers {
		c.container(fmt.Sprintf("%s.containers[%d]", path, i), &s.Containers[i], s, ports)
	}
	if s.Resources != nil {
		c.whole(path+".resources", s)
	}
	for _, name := range sortedKeys(s.Overhead) {
		c.quantity(path+".overhead"+strictjson.MapKey(string(name)), name, s.Overhead[name])
	}
	c.tolerations(path+".tolerations", s.Tolerations)
	c.spreads(path+".topologySpreadConstraints", s.TopologySpreadConstraints)
	c.labels(path+".nodeSelector", s.NodeSelector)
	if s.Affinity != nil {
		if a := s.Affinity.NodeAffinity; a != nil {
			required := a.RequiredDuringSchedulingIgnoredDuringExecution
			if required != nil && len(required.NodeSelectorTerms) == 0 {
				c.add(path+".affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms", "want at least one term")
			}
		}
		if a := s.Affinity.PodAffinity; a != nil {
			c.podTerms(path+".affinity.podAffinity", a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if a := s.Affinity.PodAntiAffinity; a != nil {
			c.podTerms(path+".affinity.podAntiAffinity", a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
}

// others checks the rest of a pod: what decides when and how it runs, and what its containers have
// to do with each other and with its volumes.
func (c *Checker) others(path string, s *corev1.PodSpec, claims []string) {
	if s.RestartPolicy != "" {
		c.oneOf(path+".restartPolicy", string(s.RestartPolicy), "Always", "OnFailure", "Never")
	}
	optional(c, path+".preemptionPolicy", s.PreemptionPolicy, "PreemptLowerPriority", "Never")
	c.seconds(path+".tolerations", s.Tolerations)
	gates := map[string]bool{}
	for i, g := range s.SchedulingGates {
		at := fmt.Sprintf("%s.schedulingGates[%d].name", path, i)
		c.key(at, g.Name)
		if gates[g.Name] {
			c.add(at, "%q is given twice", g.Name)
		}
		gates[g.Name] = true
	}
	if s.NodeName != "" && len(gates) > 0 {
		c.add(path+".nodeName", "%s: a pod with scheduling gates has no node yet", strictjson.Quote(s.NodeName))
	}
	if s.OS != nil {
		c.oneOf(path+".os.name", string(s.OS.Name), "linux", "windows")
	}
	c.volumes(path+".volumes", s.Volumes)
	c.names(path, s, claims)
}

func (c *Checker) container(path string, k *corev1.Container, s *corev1.PodSpec, ports map[string]string) {
	c.resources(path+".resources", &k.Resources)
	if s.Resources == nil {
		c.hugePages(path+".resources", &k.Resources)
	}
	for i, p := range k.Ports {
		at := fmt.Sprintf("%s.ports[%d]", path, i)
		if p.ContainerPort < 1 || p.ContainerPort > 65535 {
			c.add(at+".containerPort", "%d: want 1 to 65535", p.ContainerPort)
		}
		if p.Protocol != "" {
			c.oneOf(at+".protocol", string(p.Protocol), "TCP", "UDP", "SCTP")
		}
		switch {
		case p.HostPort == 0:
			continue
		case p.HostPort < 0 || p.HostPort > 65535:
			c.add(at+".hostPort", "%d: want 1 to 65535", p.HostPort)
		case s.HostNetwork && p.HostPort != p.ContainerPort:
			c.add(at+".hostPort", "%d: with hostNetwork it must equal the containerPort, %d", p.HostPort, p.ContainerPort)
		}
		protocol := string(p.Protocol)
		if protocol == "" {
			protocol = "TCP"
		}
		id := fmt.Sprintf("%s/%s/%d", p.HostIP, protocol, p.HostPort)
		if prior, ok := ports[id]; ok {
			c.add(at+".hostPort", "%d/%s is already used by %s", p.HostPort, protocol, prior)
			continue
		}
		ports[id] = at
	}
}

func (c *Checker) tolerations(path string, list []corev1.Toleration) {
	for i, t := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if t.Key != "" {
			c.key(at+".key", t.Key)
		} else if t.Operator != corev1.TolerationOpExists {
			c.add(at+".operator", "%q: a toleration without a key must have the operator Exists", t.Operator)
		}
		if t.Operator != "" {
			c.oneOf(at+".operator", string(t.Operator), "Equal", "Exists", "Lt", "Gt")
		}
		if t.Operator == corev1.TolerationOpExists {
			if t.Value != "" {
				c.add(at+".value", "%s: the operator Exists takes no value", strictjson.Quote(t.Value))
			}
		} else {
			c.value(at+".value", t.Value)
		}
		if t.Effect != "" {
			c.oneOf(at+".effect", string(t.Effect), "NoSchedule", "PreferNoSchedule", "NoExecute")
		}
	}
}

// seconds checks how long taints are tolerated.
func (c *Checker) seconds(path string, list []corev1.Toleration) {
	for i, t := range list {
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			c.add(fmt.Sprintf("%s[%d].effect", path, i), "%q: tolerationSeconds is valid only with effect NoExecute", t.Effect)
		}
	}
}

func (c *Checker) spreads(path string, list []corev1.TopologySpreadConstraint) {
	type id struct {
		key  string
		when corev1.UnsatisfiableConstraintAction
	}
	first := map[id]int{}
	for i := range list {
		s := &list[i]
		at := fmt.Sprintf("%s[%d]", path, i)
		if s.MaxSkew <= 0 {
			c.add(at+".maxSkew", "%d: want 1 or more", s.MaxSkew)
		}
		if s.TopologyKey == "" { // an API server stores any other, even if it is no label
			c.add(at+".topologyKey", "must not be empty")
		}
		c.oneOf(at+".whenUnsatisfiable", string(s.WhenUnsatisfiable), "DoNotSchedule", "ScheduleAnyway")
		if prior, ok := first[id{s.TopologyKey, s.WhenUnsatisfiable}]; ok {
			c.add(at, "(%s, %s) is already constrained by element %d", s.TopologyKey, s.WhenUnsatisfiable, prior)
		} else {
			first[id{s.TopologyKey, s.WhenUnsatisfiable}] = i
		}
		if s.MinDomains != nil {
			if *s.MinDomains <= 0 {
				c.add(at+".minDomains", "%d: want 1 or more", *s.MinDomains)
			}
			if s.WhenUnsatisfiable == corev1.ScheduleAnyway {
				c.add(at+".minDomains", "it is valid only with whenUnsatisfiable DoNotSchedule")
			}
		}
		optional(c, at+".nodeAffinityPolicy", s.NodeAffinityPolicy, "Honor", "Ignore")
		optional(c, at+".nodeTaintsPolicy", s.NodeTaintsPolicy, "Honor", "Ignore")
		c.selector(at+".labelSelector", s.LabelSelector)
		for j, key := range s.MatchLabelKeys {
			c.key(fmt.Sprintf("%s.matchLabelKeys[%d]", at, j), key)
			if s.LabelSelector == nil {
				c.add(fmt.Sprintf("%s.matchLabelKeys[%d]", at, j), "matchLabelKeys needs a labelSelector")
			}
		}
	}
}

func (c *Checker) podTerms(path string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	for i := range required {
		c.podTerm(fmt.Sprintf("%s.requiredDuringSchedulingIgnoredDuringExecution[%d]", path, i), &required[i])
	}
	for i := range preferred {
		at := fmt.Sprintf("%s.preferredDuringSchedulingIgnoredDuringExecution[%d]", path, i)
		if w := preferred[i].Weight; w < 1 || w > 100 {
			c.add(at+".weight", "%d: want 1 to 100", w)
		}
		c.podTerm(at+".podAffinityTerm", &preferred[i].PodAffinityTerm)
	}
}

func (c *Checker) podTerm(path string, t *corev1.PodAffinityTerm) {
	c.key(path+".topologyKey", t.TopologyKey)
	c.selector(path+".labelSelector", t.LabelSelector)
	c.selector(path+".namespaceSelector", t.NamespaceSelector)
	for i, name := range t.Namespaces {
		for _, msg := range validation.IsDNS1123Label(name) {
			c.add(fmt.Sprintf("%s.namespaces[%d]", path, i), "%s: %s", strictjson.Quote(name), msg)
		}
	}
	for _, list := range []struct {
		name string
		keys []string
	}{{".matchLabelKeys", t.MatchLabelKeys}, {".mismatchLabelKeys", t.MismatchLabelKeys}} {
		for i, key := range list.keys {
			at := fmt.Sprintf("%s%s[%d]", path, list.name, i)
			c.key(at, key)
			if t.LabelSelector == nil {
				c.add(at, "%s needs a labelSelector", strings.TrimPrefix(list.name, "."))
			}
			if list.name == ".matchLabelKeys" && slices.Contains(t.MismatchLabelKeys, key) {
				c.add(at, "%s: it is among the mismatchLabelKeys, too", strictjson.Quote(key))
			}
		}
	}
}

func (c *Checker) volumes(path string, list []corev1.Volume) {
	first := map[string]int{}
	for i := range list {
		v := &list[i]
		at := fmt.Sprintf("%s[%d]", path, i)
		if prior, ok := first[v.Name]; ok && v.Name != "" {
			c.add(at+".name", "%s is already the name of element %d", strictjson.Quote(v.Name), prior)
		} else {
			first[v.Name] = i
		}
		if n := sources(v); n > 1 {
			c.add(at, "a volume has one source, and this has %d", n)
		}
		if p := v.PersistentVolumeClaim; p != nil && p.ClaimName == "" {
			c.add(at+".persistentVolumeClaim.claimName", "must not be empty")
		}
	}
}

// sources counts the sources of a volume: each is a field of its own.
func sources(v *corev1.Volume) int {
	n := 0
	for _, field := range reflect.ValueOf(v.VolumeSource).Fields() {
		if !field.IsNil() {
			n++
		}
	}
	return n
}

// names checks what containers have to do with each other and with volumes.
func (c *Checker) names(path string, s *corev1.PodSpec, claims []string) {
	known := map[string]bool{}
	for _, name := range claims {
		known[name] = true
	}
	for i := range s.Volumes {
		known[s.Volumes[i].Name] = true
	}
	first := map[string]string{}
	for _, list := range []struct {
		at         string
		containers []corev1.Container
	}{{path + ".initContainers", s.InitContainers}, {path + ".containers", s.Containers}} {
		for i := range list.containers {
			k, at := &list.containers[i], fmt.Sprintf("%s[%d]", list.at, i)
			if prior, ok := first[k.Name]; ok && k.Name != "" {
				c.add(at+".name", "%s is already the name of %s", strictjson.Quote(k.Name), prior)
			} else {
				first[k.Name] = at
			}
			for j, m := range k.VolumeMounts {
				if !known[m.Name] {
					c.add(fmt.Sprintf("%s.volumeMounts[%d].name", at, j), "the pod has no volume %s", strictjson.Quote(m.Name))
				}
			}
			for j, d := range k.VolumeDevices {
				if !known[d.Name] {
					c.add(fmt.Sprintf("%s.volumeDevices[%d].name", at, j), "the pod has no volume %s", strictjson.Quote(d.Name))
				}
			}
		}
	}
}
