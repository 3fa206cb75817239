package manifests_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

const small = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: inflate}
spec:
  replicas: 3
  selector: {matchLabels: {app: inflate}}
  template:
    metadata: {labels: {app: inflate}}
    spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
---
apiVersion: v1
kind: Service
metadata: {name: inflate}
`

func ExampleParse() {
	s, err := manifests.Parse([]manifests.File{{Name: "small.yaml", Data: []byte(small)}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for pod := range s.AllPods() {
		fmt.Println(pod.Namespace + "/" + pod.Name)
	}
	fmt.Println(s.NodePools[0].NodeRequirements())
	fmt.Println(s.Notes)
	// Output:
	// default/inflate-0
	// default/inflate-1
	// default/inflate-2
	// karpenter.sh/nodepool in (default), kubernetes.io/os in (linux)
	// [skipped 1 object of other kinds: Service 1]
}

func ExampleRead() {
	o := &manifests.Options{Stdin: strings.NewReader("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  container: []\n")}
	_, err := manifests.Read([]string{"-"}, o)
	fmt.Fprintln(os.Stdout, err)
	// Output:
	// -:4: Pod default/web: spec.containers: a pod needs at least one container
	// -:5: Pod default/web: spec.container: unknown field "container": did you mean "containers"?
}

func ExampleProblem() {
	_, err := manifests.Parse([]manifests.File{{Name: "a.yaml", Data: []byte("kind: Pod\n")}}, nil)
	var p *manifests.Problem
	fmt.Println(errors.As(err, &p), p.Position.Line, p.Path)
	// Output: true 1 apiVersion
}

func ExampleSnapshot_Position() {
	s, _ := manifests.Parse([]manifests.File{{Name: "small.yaml", Data: []byte(small)}}, nil)
	fmt.Println(s.Position("NodePool", "", "default"))
	// Output: small.yaml:12 true
}

func ExampleWorkload() {
	s, _ := manifests.Parse([]manifests.File{{Name: "small.yaml", Data: []byte(small)}}, nil)
	w := s.Workloads[0]
	fmt.Println(w.Kind, w.Name, w.Len(), w.PodName(2))
	// Output: Deployment inflate 3 inflate-2
}

// A cloud's own kind becomes known by its decoder.
func ExampleClassDecoder() {
	size := func(raw json.RawMessage) (any, error) {
		var class struct {
			Spec struct{ Size string }
		}
		err := json.Unmarshal(raw, &class)
		return class.Spec.Size, err
	}
	o := &manifests.Options{Classes: map[string]manifests.ClassDecoder{"TestNodeClass": size}}
	text := "{apiVersion: example.com/v1, kind: TestNodeClass, metadata: {name: a}, spec: {size: big}}"
	s, err := manifests.Parse([]manifests.File{{Name: "class.yaml", Data: []byte(text)}}, o)
	fmt.Println(s.NodeClasses[0].Name, s.NodeClasses[0].Value, err)
	// Output: a big <nil>
}

func ExampleFile() {
	a := manifests.File{Name: "a.yaml", Data: []byte("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")}
	b := manifests.File{Name: "b.yaml", Data: a.Data}
	_, err := manifests.Parse([]manifests.File{a, b}, nil)
	fmt.Println(err)
	// Output: b.yaml:1: Namespace shop: metadata.name: the object is given twice, first at a.yaml:1
}

func ExampleOptions() {
	_, err := manifests.Parse([]manifests.File{{Name: "small.yaml", Data: []byte(small)}}, &manifests.Options{MaxPods: 2})
	fmt.Println(err)
	// Output: small.yaml:2: Deployment default/inflate: spec.replicas: it has 3 pods and the input has 3 altogether; at most 2 are allowed
}

func ExampleSnapshot() {
	var empty manifests.Snapshot
	fmt.Println(empty.CountPods())
	// Output: 0
}

func ExamplePosition() {
	fmt.Println(manifests.Position{File: "a.yaml", Document: 2, Line: 7})
	fmt.Println(manifests.Position{File: "a.yaml", Document: 2})
	// Output:
	// a.yaml:7
	// a.yaml: document 2
}

func ExampleNodeClass() {
	text := "{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: a}, spec: {role: nodes}}"
	s, _ := manifests.Parse([]manifests.File{{Name: "class.yaml", Data: []byte(text)}}, nil)
	fmt.Println(s.NodeClasses[0].Kind, string(s.NodeClasses[0].Raw))
	// Output: EC2NodeClass {"apiVersion":"karpenter.k8s.aws/v1","kind":"EC2NodeClass","metadata":{"name":"a"},"spec":{"role":"nodes"}}
}

// A decoder's error that knows its field is reported on the field's line.
func ExampleFieldProblem() {
	refuse := func(json.RawMessage) (any, error) { return nil, &fieldError{"spec.size", "\"big\": want a number"} }
	o := &manifests.Options{Classes: map[string]manifests.ClassDecoder{"TestNodeClass": refuse}}
	text := "apiVersion: example.com/v1\nkind: TestNodeClass\nmetadata: {name: a}\nspec:\n  size: big\n"
	_, err := manifests.Parse([]manifests.File{{Name: "class.yaml", Data: []byte(text)}}, o)
	fmt.Println(err)
	// Output: class.yaml:5: TestNodeClass a: spec.size: "big": want a number
}

func ExamplePods() {
	_, err := manifests.Pods("pods", []json.RawMessage{[]byte(`{"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main", "ports": [{"containerPort": 99999}]}]}}`)})
	fmt.Println(err)
	// Output: pods[0].spec.containers[0].ports[0].containerPort: 99999: want 1 to 65535
}

func ExamplePodTemplates() {
	templates, err := manifests.PodTemplates("templates", []json.RawMessage{[]byte(`{"metadata": {"name": "web"}, "template": {"spec": {"containers": [{"name": "main"}]}}}`)})
	fmt.Println(templates[0].Namespace, templates[0].Name, err)
	// Output: default web <nil>
}
