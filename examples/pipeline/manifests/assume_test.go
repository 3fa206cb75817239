package manifests_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// With Assume, classes that every cluster has are assumed where the manifests lack them, with a note. A name that looks misspelt is not.
func TestAssumedClasses(t *testing.T) {
	const (
		set    = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 4, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {%more%containers: [{name: c, image: i}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {%class%accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}"
		stored = "\n---\n{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: other, uid: u}, provisioner: p}"
		made   = "\n---\n{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: other, annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}, provisioner: p}"
		normal = "\n---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: important}, value: 5}"
	)
	for name, c := range map[string]struct {
		class, more, rest string
		classes           []string
		note, fail        string
	}{
		"usual":             {class: "storageClassName: io2, ", classes: []string{"io2"}, note: `4 PersistentVolumeClaims use StorageClass "io2", which is not in the input: it is assumed to be of ebs.csi.aws.com`},
		"another cloud's":   {class: "storageClassName: premium-rwo, ", classes: []string{"premium-rwo"}, note: "pd.csi.storage.gke.io"},
		"nobody knows":      {class: "storageClassName: fast-of-ours, ", note: `4 PersistentVolumeClaims use StorageClass "fast-of-ours", which is not in the input`},
		"default":           {classes: []string{"assumed-default"}, note: "4 PersistentVolumeClaims use the default StorageClass"},
		"default is there":  {rest: made, classes: []string{"other"}},
		"of an export":      {class: "storageClassName: gp3, ", rest: stored, classes: []string{"other"}, note: `"gp3", which is not in the input`},
		"no class wanted":   {class: "storageClassName: '', "},
		"priority":          {class: "storageClassName: '', ", more: "priorityClassName: batch, ", note: `4 pods use PriorityClass "batch", which is not in the input and is assumed to be 0`},
		"priority misspelt": {class: "storageClassName: '', ", more: "priorityClassName: importnat, ", rest: normal, fail: `did you mean "important"?`},
		"runtime":           {class: "storageClassName: '', ", more: "runtimeClassName: gvisor, ", note: `4 pods use RuntimeClass "gvisor"`},
	} {
		text := strings.NewReplacer("%class%", c.class, "%more%", c.more).Replace(set) + c.rest
		files := []manifests.File{{Name: "a.yaml", Data: []byte(text)}}
		s, err := manifests.Parse(files, &manifests.Options{Assume: true})
		if c.fail != "" {
			assert.ErrorContains(t, err, c.fail, name)
			continue
		}
		require.NoError(t, err, name)
		var classes []string
		for _, x := range s.StorageClasses {
			classes = append(classes, x.Name)
		}
		assert.Equal(t, c.classes, classes, name)
		assert.Contains(t, strings.Join(s.Notes, "\n"), c.note, name)
		strict, err := manifests.Parse(files, nil)
		if c.more != "" {
			assert.Error(t, err, "%s: nothing is assumed unasked", name)
			continue
		}
		require.NoError(t, err, name)
		assert.Len(t, strict.StorageClasses, strings.Count(c.rest, "kind: StorageClass"), name)
	}
}

// What is left out or is hardly meant is said.
func TestNotesOnWhatIsMissing(t *testing.T) {
	const (
		agent = "{apiVersion: v1, kind: Pod, metadata: {name: agent-x, namespace: ops, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: u, controller: true}]}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}"
		set   = "\n---\n{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: ops}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}"
		tiny  = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i, resources: {requests: {memory: %s}}}]}}"
	)
	selecting := func(kind, terms string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: shop}, spec: {affinity: {" + kind + ": {" + terms + "}}, containers: [{name: c, image: i}]}}"
	}
	const (
		required  = "requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {}, namespaceSelector: {%s}}]"
		preferred = "preferredDuringSchedulingIgnoredDuringExecution: [{weight: 3, podAffinityTerm: {topologyKey: zone, labelSelector: {}, namespaceSelector: {%s}}}]"
		byTeam    = "matchLabels: {team: red}"
		unlike    = "matchExpressions: [{key: team, operator: NotIn, values: [red]}]"
		byName    = "matchLabels: {kubernetes.io/metadata.name: ops}"
		shop      = "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"
		unlisted  = "1 pod selects namespaces by their labels, but not all namespaces are in the input"
	)
	for text, want := range map[string]string{
		selecting("podAffinity", fmt.Sprintf(required, byTeam)):             unlisted,
		selecting("podAntiAffinity", fmt.Sprintf(preferred, unlike)):        unlisted,
		selecting("podAntiAffinity", fmt.Sprintf(required, byName)):         "",
		selecting("podAffinity", fmt.Sprintf(preferred, "")):                "",
		selecting("podAffinity", fmt.Sprintf(required, byTeam)) + shop:      "",
		selecting("podAntiAffinity", fmt.Sprintf(preferred, unlike)) + shop: "",
		agent:                                  "the pods of ops/agent are in the input",
		agent + set:                            "",
		strings.Replace(tiny, "%s", "256m", 1): "1 container requests thousandths of a byte, such as 256m memory",
		strings.Replace(tiny, "%s", "256M", 1): "",
		strings.Replace(tiny, "%s", "1073741824", 1): "",
	} {
		s, err := manifests.Parse([]manifests.File{{Name: "a.yaml", Data: []byte(text)}}, nil)
		require.NoError(t, err)
		notes := strings.Join(s.Notes, "\n")
		if want == "" {
			assert.Empty(t, notes, text)
		} else {
			assert.Contains(t, notes, want)
		}
	}
}
