package manifests_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// What an API server refuses is an error, and what it accepts is none. want is the path and a part of
// the message.
func TestWhatAnAPIServerRefuses(t *testing.T) {
	template := func(spec string) string {
		return "template: {metadata: {labels: {a: b}}, spec: {" + spec + "}}"
	}
	apps := func(kind, spec string) string {
		return "{apiVersion: apps/v1, kind: " + kind + ", metadata: {name: x}, spec: {selector: {matchLabels: {a: b}}, " + spec + "}}"
	}
	pod := func(spec string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {" + spec + "}}"
	}
	scaler := func(spec string) string {
		return "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: x}, spec: {scaleTargetRef: {kind: Deployment, name: web}, " + spec + "}}"
	}
	job := func(spec string) string {
		return "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {" + spec + "}}"
	}
	cron := func(schedule string) string {
		return "{apiVersion: batch/v1, kind: CronJob, metadata: {name: x}, spec: {schedule: '" + schedule + "', jobTemplate: {spec: {" + template("restartPolicy: Never, containers: [{name: c}]") + "}}}}"
	}
	const one = "containers: [{name: c}]"
	cases := map[string][2]string{
		"an autoscaler with crossed bounds":             {scaler("minReplicas: 10, maxReplicas: 3"), "spec.maxReplicas: 3: want minReplicas, 10, or more"},
		"an autoscaler without a maximum":               {scaler("minReplicas: 1"), "spec.maxReplicas: an autoscaler needs it"},
		"an autoscaler with no pods":                    {scaler("maxReplicas: 0"), "spec.maxReplicas: 0: want 1 or more"},
		"an autoscaler with a negative minimum":         {scaler("minReplicas: -1, maxReplicas: 3"), "spec.minReplicas: -1: want 0 or more"},
		"an autoscaler with a word":                     {scaler("minReplicas: many, maxReplicas: 3"), "spec.minReplicas: \"many\": want a number"},
		"an autoscaler":                                 {scaler("minReplicas: 1, maxReplicas: 3"), ""},
		"an autoscaler without a minimum":               {scaler("minReplicas: null, maxReplicas: 3"), ""},
		"a Job without a restart policy":                {job(template(one)), "spec.template.spec.restartPolicy: \"Always\": a job needs OnFailure or Never"},
		"a Job that restarts":                           {job(template("restartPolicy: Always, " + one)), "spec.template.spec.restartPolicy"},
		"a Job that does not":                           {job(template("restartPolicy: OnFailure, " + one)), ""},
		"an indexed Job without completions":            {job("completionMode: Indexed, " + template("restartPolicy: Never, "+one)), "spec.completions"},
		"an indexed Job":                                {job("completionMode: Indexed, completions: 2, " + template("restartPolicy: Never, "+one)), ""},
		"a schedule in words":                           {cron("every day"), "spec.schedule: \"every day\": want five fields"},
		"no schedule":                                   {cron(""), "spec.schedule"},
		"a schedule with a time zone":                   {cron("TZ=UTC 0 3 * * *"), "spec.schedule: \"TZ=UTC 0 3 * * *\": the time zone is in spec.timeZone"},
		"a stored schedule with a time zone":            {strings.Replace(cron("CRON_TZ=Europe/Berlin 0 3 * * *"), "name: x", "name: x, uid: u, resourceVersion: '1'", 1), ""},
		"a schedule":                                    {cron("0 3 * * mon-fri"), ""},
		"a schedule by name":                            {cron("@daily"), ""},
		"two containers of one name":                    {pod("containers: [{name: c}, {name: c}]"), "spec.containers[1].name: \"c\" is already the name of spec.containers[0]"},
		"an init container of that name":                {pod("initContainers: [{name: c}], " + one), "spec.containers[0].name: \"c\" is already the name of spec.initContainers[0]"},
		"a mount without a volume":                      {pod("containers: [{name: c, volumeMounts: [{name: nope, mountPath: /x}]}]"), "spec.containers[0].volumeMounts[0].name: the pod has no volume \"nope\""},
		"a device without a volume":                     {pod("containers: [{name: c, volumeDevices: [{name: nope, devicePath: /x}]}]"), "spec.containers[0].volumeDevices[0].name"},
		"a mount of a volume":                           {pod("volumes: [{name: v, emptyDir: {}}], containers: [{name: c, volumeMounts: [{name: v, mountPath: /x}]}]"), ""},
		"a mount of a claim template":                   {apps("StatefulSet", "volumeClaimTemplates: [{metadata: {name: v}, spec: {resources: {requests: {storage: 1Gi}}}}], "+template("containers: [{name: c, volumeMounts: [{name: v, mountPath: /x}]}]")), ""},
		"a volume of two kinds":                         {pod("volumes: [{name: v, emptyDir: {}, persistentVolumeClaim: {claimName: p}}], " + one), "spec.volumes[0]: a volume has one source"},
		"a GPU without a limit":                         {pod("containers: [{name: c, resources: {requests: {nvidia.com/gpu: 1}}}]"), "spec.containers[0].resources.requests[\"nvidia.com/gpu\"]: nvidia.com/gpu needs a limit of the same amount, 1"},
		"huge pages without a limit":                    {pod("containers: [{name: c, resources: {requests: {cpu: 1, hugepages-2Mi: 2Mi}}}]"), "hugepages-2Mi needs a limit of the same amount, 2Mi"},
		"huge pages alone":                              {pod("containers: [{name: c, resources: {limits: {hugepages-2Mi: 2Mi}}}]"), "spec.containers[0].resources: huge pages need cpu or memory"},
		"a GPU with a limit alone":                      {pod("containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]"), ""},
		"a GPU with both":                               {pod("containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}, requests: {nvidia.com/gpu: 1}}}]"), ""},
		"a gate on a pod that has a node":               {pod("nodeName: n1, schedulingGates: [{name: g}], " + one), "spec.nodeName"},
		"an unknown operating system":                   {pod("os: {name: macos}, " + one), "spec.os.name"},
		"Windows":                                       {pod("os: {name: windows}, " + one), ""},
		"a PodTemplate with two containers of one name": {"{apiVersion: v1, kind: PodTemplate, metadata: {name: x}, template: {spec: {containers: [{name: c}, {name: c}]}}}", "template.spec.containers[1].name"},
	}
	for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"} {
		for _, policy := range []string{"OnFailure", "Never"} {
			cases[kind+" "+policy] = [2]string{apps(kind, template("restartPolicy: "+policy+", "+one)), "spec.template.spec.restartPolicy: \"" + policy + "\": a controller that keeps its pods running allows Always only"}
		}
		cases[kind+" Always"] = [2]string{apps(kind, template("restartPolicy: Always, "+one)), ""}
		cases[kind+" deadline"] = [2]string{apps(kind, template("activeDeadlineSeconds: 5, "+one)), "spec.template.spec.activeDeadlineSeconds"}
	}
	for name, c := range cases {
		_, err := manifests.Parse([]manifests.File{{Name: "a.yaml", Data: []byte(c[0])}}, nil)
		switch {
		case c[1] == "":
			assert.NoError(t, err, name)
		case assert.Error(t, err, name):
			assert.Contains(t, err.Error(), c[1], name)
			assert.Len(t, strings.Split(err.Error(), "\n"), 1, name)
		}
	}
}
