package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
)

// booted is a node with a boot id.
func booted(id string, ready bool) *corev1.Node {
	n := &corev1.Node{}
	n.Status.NodeInfo.BootID = id
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	if ready {
		n.Status.Conditions[0].Status = corev1.ConditionTrue
	}
	return n
}

// A node drains for at most a minute, is rebooted, and comes back.
func ExampleReboot_Next() {
	start := time.Date(2026, 1, 8, 12, 0, 0, 0, time.UTC)
	grace := time.Minute
	r := lifecycle.Reboot{Requested: start, Grace: &grace}
	fmt.Println(r.Next(booted("a", true), false, start))
	fmt.Println(r.Next(booted("a", true), false, start.Add(time.Minute)))
	r.Noted, r.BootID = true, "a"
	fmt.Println(r.Next(booted("a", true), false, start.Add(time.Minute)))
	r.Issued = start.Add(time.Minute)
	fmt.Println(r.Next(booted("a", false), false, start.Add(2*time.Minute)))
	fmt.Println(r.Next(booted("b", false), false, start.Add(3*time.Minute)))
	fmt.Println(r.Next(booted("b", true), false, start.Add(4*time.Minute)))
	// Output:
	// drain
	// note
	// ask
	// wait
	// open
	// succeeded
}

func ExampleReboot() {
	now := time.Date(2026, 1, 8, 12, 0, 0, 0, time.UTC)
	r := lifecycle.Reboot{Requested: now.Add(-time.Hour), Issued: now.Add(-21 * time.Minute), Noted: true, BootID: "a"}
	fmt.Println(r.Next(booted("b", false), true, now))
	// Output: failed
}

func ExampleStep() {
	now := time.Date(2026, 1, 8, 12, 0, 0, 0, time.UTC)
	step := lifecycle.Reboot{Requested: now}.Next(booted("a", true), true, now)
	fmt.Println(step == lifecycle.StepDrain, "pods may be bound there still")
	// Output: true pods may be bound there still
}

func ExampleRebootsEnough() {
	now := time.Date(2026, 1, 8, 12, 0, 0, 0, time.UTC)
	fmt.Println(lifecycle.RebootsEnough([]time.Time{now.Add(-25 * time.Hour), now.Add(-time.Hour)}, now))
	fmt.Println(lifecycle.RebootsEnough([]time.Time{now.Add(-23 * time.Hour), now.Add(-time.Hour)}, now))
	// Output:
	// false
	// true
}

// Each step at its limits.
func TestRebootSteps(t *testing.T) {
	start := time.Date(2026, 1, 8, 12, 0, 0, 0, time.UTC)
	none, second, minute := time.Duration(0), time.Second, time.Minute
	noted := lifecycle.Reboot{Requested: start, Noted: true, BootID: "a"}
	asked := noted
	asked.Asked = start
	issued := noted
	issued.Issued = start
	old, fresh := booted("a", true), booted("b", true)
	for name, c := range map[string]struct {
		reboot  lifecycle.Reboot
		node    *corev1.Node
		drained bool
		after   time.Duration
		want    lifecycle.Step
	}{
		"no bound: for ever":           {lifecycle.Reboot{Requested: start}, old, false, 1000 * time.Hour, lifecycle.StepDrain},
		"no drain":                     {lifecycle.Reboot{Requested: start, Grace: &none}, old, false, 0, lifecycle.StepNote},
		"the bound is over":            {lifecycle.Reboot{Requested: start, Grace: &minute}, old, false, time.Minute, lifecycle.StepNote},
		"the bound is not":             {lifecycle.Reboot{Requested: start, Grace: &minute}, old, false, time.Minute - 1, lifecycle.StepDrain},
		"a bound of a second is five":  {lifecycle.Reboot{Requested: start, Grace: &second}, old, false, 5*time.Second - 1, lifecycle.StepDrain},
		"and then it is over":          {lifecycle.Reboot{Requested: start, Grace: &second}, old, false, 5 * time.Second, lifecycle.StepNote},
		"drained too early":            {lifecycle.Reboot{Requested: start}, old, true, 5*time.Second - 1, lifecycle.StepDrain},
		"drained":                      {lifecycle.Reboot{Requested: start}, old, true, 5 * time.Second, lifecycle.StepNote},
		"gone while it drains":         {lifecycle.Reboot{Requested: start}, nil, false, 5 * time.Minute, lifecycle.StepWait},
		"and too long":                 {lifecycle.Reboot{Requested: start}, nil, false, 5*time.Minute + 1, lifecycle.StepFailed},
		"noted":                        {noted, old, true, time.Hour, lifecycle.StepAsk},
		"noted, and it was rebooted":   {noted, fresh, true, time.Hour, lifecycle.StepIssued},
		"noted, and gone":              {noted, nil, true, time.Hour, lifecycle.StepWait},
		"asked":                        {asked, old, true, 5 * time.Minute, lifecycle.StepAsk},
		"asked too long":               {asked, old, true, 5*time.Minute + 1, lifecycle.StepFailed},
		"asked too long, and gone":     {asked, nil, true, 5*time.Minute + 1, lifecycle.StepFailed},
		"asked too long, but rebooted": {asked, fresh, true, time.Hour, lifecycle.StepIssued},
		"issued":                       {issued, old, true, 20 * time.Minute, lifecycle.StepWait},
		"issued, and gone":             {issued, nil, true, 20 * time.Minute, lifecycle.StepWait},
		"not another boot":             {issued, old, true, 20*time.Minute + 1, lifecycle.StepFailed},
		"gone too long":                {issued, nil, true, 20*time.Minute + 1, lifecycle.StepFailed},
		"another boot":                 {issued, booted("b", false), true, 0, lifecycle.StepOpen},
		"another boot, never ready":    {issued, booted("b", false), true, 20*time.Minute + 1, lifecycle.StepFailed},
		"back":                         {issued, fresh, true, 0, lifecycle.StepSucceeded},
		"back late":                    {issued, fresh, true, time.Hour, lifecycle.StepSucceeded},
	} {
		assert.Equal(t, c.want, c.reboot.Next(c.node, c.drained, start.Add(c.after)), name)
	}
}
