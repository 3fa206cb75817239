package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/examples/operator/sandbox"
	"github.com/joinery-sdk/joinery/instancetypes"
)

// step is one step of the story: what is done, and what must come of it.
type step struct {
	what string
	do   func(context.Context) error
	want func(sandbox.State) bool
}

// stepLimit is how long a step may take; on two cores each takes a few seconds, and consolidation
// some more.
const stepLimit = 2 * time.Minute

// demo plays the story and prints a line whenever something has changed.
func demo(ctx context.Context, s *sandbox.Sandbox, out io.Writer) error {
	app := sandbox.Inflate("inflate", 0, "1", "1Gi")
	if err := s.Apply(ctx, sandbox.Class(), sandbox.Pool("default", general), app); err != nil {
		return err
	}
	start := time.Now()
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintf(out, "%6.1f s  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	scale := func(n int32) func(context.Context) error {
		return func(ctx context.Context) error {
			patch := client.MergeFrom(app.DeepCopy())
			app.Spec.Replicas = &n
			return s.Client.Patch(ctx, app, patch)
		}
	}
	all := func(n int) func(sandbox.State) bool {
		return func(x sandbox.State) bool {
			return x.Running == n && x.Pods == n && x.Nodes == x.Machines && x.Claims == x.Nodes
		}
	}
	var before sandbox.State
	gone, expiring := map[string]bool{}, map[string]bool{}
	short := sandbox.Inflate("short-lived", 4, "1", "1Gi", func(t *corev1.PodTemplateSpec) {
		t.Spec.NodeSelector = map[string]string{karpv1.NodePoolLabelKey: "short"}
	})
	steps := []step{
		{"0 -> 5 replicas", scale(5), all(5)},
		{"5 -> 100 replicas", scale(100), all(100)},
		{"the cloud takes a spot machine back, with two minutes' notice", func(context.Context) error {
			for _, m := range s.Cloud.Truth() {
				if m.Labels[instancetypes.LabelCapacityType] == instancetypes.CapacityTypeSpot {
					gone[m.ID] = true
					return s.Cloud.Interrupt(m.ID, interruption.SpotInterrupted, 2*time.Minute)
				}
			}
			return errors.New("there is no spot machine")
		}, func(x sandbox.State) bool {
			for _, m := range s.Cloud.Truth() {
				if gone[m.ID] {
					return false
				}
			}
			return all(100)(x)
		}},
		{"100 -> 40 replicas: the rest is consolidated", func(ctx context.Context) error {
			before, _ = s.State(ctx)
			return scale(40)(ctx)
		}, func(x sandbox.State) bool { return all(40)(x) && x.Cost < before.Cost/2 }},
		{"a second pool, whose nodes live for 20 seconds, and 4 pods for it", func(ctx context.Context) error {
			return s.Apply(ctx, sandbox.Pool("short", general, func(p *karpv1.NodePool) {
				p.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("20s")
			}), short)
		}, func(x sandbox.State) bool {
			for _, m := range s.Cloud.Truth() {
				expiring[m.ID] = expiring[m.ID] || m.Pool == "short"
			}
			return all(44)(x)
		}},
		{"they expire and are replaced", func(context.Context) error { return nil }, func(x sandbox.State) bool {
			for _, m := range s.Cloud.Truth() {
				if expiring[m.ID] {
					return false
				}
			}
			return all(44)(x)
		}},
		{"everything -> 0 replicas", func(ctx context.Context) error {
			return errors.Join(scale(0)(ctx), s.Client.Delete(ctx, short))
		}, func(x sandbox.State) bool { return x == sandbox.State{} }},
	}
	for _, st := range steps {
		if err := play(ctx, s, st, say); err != nil {
			return err
		}
	}
	say("nothing is left")
	return nil
}

// general keeps to the families of general use, of four cores and more, so that there is something
// to consolidate.
func general(p *karpv1.NodePool) {
	p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements,
		sandbox.Require("karpenter.k8s.aws/instance-category", "c", "m", "r"), sandbox.Require("karpenter.k8s.aws/instance-cpu", "4", "8", "16"))
}

// play does a step and waits for what must come of it.
func play(ctx context.Context, s *sandbox.Sandbox, st step, say func(string, ...any)) error {
	say("-- %s", st.what)
	if err := st.do(ctx); err != nil {
		return fmt.Errorf("%s: %w", st.what, err)
	}
	var last sandbox.State
	return sandbox.Until(ctx, stepLimit, func() error {
		now, err := s.State(ctx)
		if err != nil {
			return err
		}
		if now != last {
			say("%s", now)
			last = now
		}
		if !st.want(now) {
			return fmt.Errorf("%s: still %s", st.what, now)
		}
		return nil
	})
}
