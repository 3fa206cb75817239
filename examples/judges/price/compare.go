package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/examples/judges/karpenter"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/pricebench"
	"github.com/joinery-sdk/joinery/instancetypes/kwok"
)

// row is one workload at one size.
type row struct {
	workload     string
	maxCPU       int64
	pods         int
	seed         uint64
	bound        float64
	ours, theirs side
}

// side is one planner's answer.
type side struct {
	placed, nodes int
	price         float64 // dollars an hour
	accepted      int     // -1: not judged
	seconds       float64
}

// counts reports whether the row says who is cheaper: both plans hold the same number of pods and
// are accepted.
func (r *row) counts() bool {
	whole := func(s side) bool { return s.accepted < 0 || s.accepted == s.placed }
	return r.ours.placed == r.theirs.placed && whole(r.ours) && whole(r.theirs)
}

// saving is ours against theirs in percent, negative where ours is cheaper.
func (r *row) saving() float64 { return 100 * (r.ours.price/r.theirs.price - 1) }

func (r *row) line() string {
	limit := "any"
	if r.maxCPU > 0 {
		limit = fmt.Sprint(r.maxCPU)
	}
	one := func(head, name string, s side, price string) string {
		accepted := "-"
		if s.accepted >= 0 {
			accepted = fmt.Sprint(s.accepted)
		}
		over := "-"
		if r.bound > 0 {
			over = fmt.Sprintf("%+.1f%%", 100*(s.price/r.bound-1))
		}
		return fmt.Sprintf("| %s | %s | %d | %s | %d | %.3f | %s | %s | %.2f |", head, name, s.placed, accepted, s.nodes, s.price, over, price, s.seconds)
	}
	saving := fmt.Sprintf("%+.1f%%", r.saving())
	if !r.counts() {
		saving = "(" + saving + ")"
	}
	return one(fmt.Sprintf("%s | %s | %d", r.workload, limit, r.pods), "Joinery", r.ours, saving) + "\n" + one(" | | ", "Karpenter", r.theirs, "")
}

// podsOf are the shapes as pods; those that fit no type are left out.
func podsOf(shapes []pricebench.Shape, fits func(pricebench.Shape) bool) []*corev1.Pod {
	var out []*corev1.Pod
	for i, s := range shapes {
		if !fits(s) {
			continue
		}
		requests := corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(s.MilliCPU, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(s.MiB<<20, resource.BinarySI),
		}
		out = append(out, &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%d", i), UID: types.UID(fmt.Sprintf("pod-%d", i))},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "main", Image: "main", Resources: corev1.ResourceRequirements{Requests: requests},
			}}},
		})
	}
	return out
}

// catalogue is the types in the form that both read, and which shapes fit the largest of them.
func catalogue(maxCPU int64) ([]scenario.Type, func(pricebench.Shape) bool, error) {
	list, err := pricebench.Catalogue(maxCPU)
	if err != nil {
		return nil, nil, err
	}
	data, err := kwok.Write(list)
	if err != nil {
		return nil, nil, err
	}
	var out []scenario.Type
	fits := func(s pricebench.Shape) bool {
		for i := range list {
			free := list[i].Allocatable()
			if s.MilliCPU <= free.Cpu().MilliValue() && s.MiB<<20 <= free.Memory().Value() {
				return true
			}
		}
		return false
	}
	return out, fits, json.Unmarshal(data, &out)
}

// compare plans the pods that the seed draws with both and has both plans judged, up to so many
// pods.
func compare(ctx context.Context, w pricebench.Workload, n int, maxCPU int64, seed uint64, judged int) (row, error) {
	out := row{workload: w.Name, maxCPU: maxCPU, pods: n, seed: seed}
	list, fits, err := catalogue(maxCPU)
	if err != nil {
		return out, err
	}
	pods := podsOf(w.Draw(n, rand.New(rand.NewPCG(seed, uint64(n)))), fits)
	out.pods = len(pods)
	snapshot, theirs, err := replay.Both(ctx, list, pods)
	if err != nil {
		return out, err
	}
	start := time.Now()
	packed, err := plan.Make(context.Background(), snapshot, nil)
	if err != nil {
		return out, err
	}
	took := time.Since(start)
	nodes, order := replay.Plan(packed)
	out.bound = packed.Bound.Price.Dollars()
	out.ours = side{len(order), len(nodes), packed.Cost().Dollars(), -1, took.Seconds()}
	if n <= judged {
		verdict, err := kubejudge.Judge(ctx, kubejudge.Scenario{Nodes: nodes, Pods: pods}, order)
		if err != nil {
			return out, err
		}
		out.ours.accepted = len(verdict.Accepted)
	}
	result, err := karpenter.Solve(ctx, theirs)
	if err != nil {
		return out, err
	}
	nodes, order = replay.KarpenterPlan(result)
	out.theirs = side{result.Placed(), len(nodes), result.PricePerHour(), -1, (result.Compile + result.Solve).Seconds()}
	if n <= judged {
		verdict, err := kubejudge.JudgeAnyOrder(ctx, kubejudge.Scenario{Nodes: nodes, Pods: theirs.Pods}, order)
		if err != nil {
			return out, err
		}
		out.theirs.accepted = len(verdict.Accepted)
	}
	return out, nil
}
