// Package nodefeature knows which features of a kubelet a pod needs, and which ones a node
// declares.
//
// kube-scheduler binds a pod only to nodes that declare what the pod needs (plugin
// NodeDeclaredFeatures, on by default since Kubernetes 1.36). A feature is represented as a label
// under its own key, so that it is planned, verified and explained like a label.
package nodefeature

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Features that a pod may need when it is bound, by the names under which nodes declare them. Other
// declared features matter only to pods that are changed while they run.
const (
	restartAllContainers   = "RestartAllContainersOnContainerExits"
	userNamespacesWithHost = "UserNamespacesHostNetworkSupport"
	bindMountOptions       = "VolumeBindMountOptions"
)

// bindMountField is a field of Kubernetes 1.37.
const bindMountField = "BindMountOptions"

// prefix starts the keys of features. No label can have such a key.
const prefix = "node feature "

// Name returns the feature of a key; false for keys of labels.
func Name(key string) (string, bool) { return strings.CutPrefix(key, prefix) }

// Needed returns the features that a pod needs, in order; none for most pods. Three kinds of pods
// need one: a pod in a user namespace and in the network of its node (KEP-4671), a pod with a
// container whose exit restarts all containers (KEP-5532), and a pod that mounts volumes with
// options of bind mounts.
func Needed(spec *corev1.PodSpec) []string {
	var restarts, mounts bool
	_, mountable := reflect.TypeFor[corev1.VolumeMount]().FieldByName(bindMountField)
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			c := &list[i]
			restarts = restarts || slices.ContainsFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool { return r.Action == "RestartAllContainers" })
			for k := range c.VolumeMounts {
				mounts = mounts || mountable && len(texts(&c.VolumeMounts[k], bindMountField)) > 0
			}
		}
	}
	var out []string
	if restarts {
		out = append(out, restartAllContainers)
	}
	if spec.HostNetwork && spec.HostUsers != nil && !*spec.HostUsers {
		out = append(out, userNamespacesWithHost)
	}
	if mounts {
		out = append(out, bindMountOptions)
	}
	return out
}

// Labels returns the features as labels, under keys that no label has.
func Labels(names []string) map[string]string {
	out := make(map[string]string, len(names))
	for _, name := range names {
		out[prefix+name] = "true"
	}
	return out
}

// Declared returns the features of the node as labels.
func Declared(n *corev1.Node) map[string]string {
	return Labels(texts(&n.Status, "DeclaredFeatures"))
}

// Declare makes the node declare the features of labels, in order. It does nothing if the field is
// unknown.
func Declare(n *corev1.Node, labels map[string]string) {
	var names []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if name, ok := Name(key); ok {
			names = append(names, name)
		}
	}
	if f := reflect.ValueOf(&n.Status).Elem().FieldByName("DeclaredFeatures"); f.IsValid() && f.CanSet() {
		f.Set(reflect.ValueOf(names))
	}
}

// All returns the labels of a node that declares whatever a pod may need.
func All() map[string]string {
	return Labels([]string{restartAllContainers, userNamespacesWithHost, bindMountOptions})
}

// texts reads a field by its name, because the oldest k8s.io/api that this module compiles with
// lacks it.
func texts(of any, field string) []string {
	f := reflect.ValueOf(of).Elem().FieldByName(field)
	if !f.IsValid() {
		return nil
	}
	list, _ := reflect.TypeAssert[[]string](f)
	return list
}

// Newest returns the newest node that shows its kubelet; nil if none does.
func Newest(nodes []*corev1.Node) *corev1.Node {
	var out *corev1.Node
	for _, n := range nodes {
		if n.Status.NodeInfo.KubeletVersion == "" && len(Declared(n)) == 0 {
			continue
		}
		if out == nil || cmp.Or(n.CreationTimestamp.Compare(out.CreationTimestamp.Time), strings.Compare(out.Name, n.Name)) > 0 {
			out = n
		}
	}
	return out
}
