package crds_test

func pools() []table {
	return []table{
		{"requirements", `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [HERE]
`, []row{
			{`{key: kubernetes.io/arch, operator: In, values: [amd64]}`, ""},
			{`{key: kubernetes.io/arch, operator: In, values: []}`, ""},
			{`{key: kubernetes.io/arch, operator: In}`, ""},
			{`{key: kubernetes.io/arch, operator: NotIn, values: []}`, ""},
			{`{key: kubernetes.io/arch, operator: NotIn}`, ""},
			{`{key: kubernetes.io/arch, operator: Exists}`, ""},
			{`{key: kubernetes.io/arch, operator: Exists, values: []}`, ""},
			{`{key: kubernetes.io/arch, operator: Exists, values: [amd64]}`, ""},
			{`{key: example.com/x, operator: DoesNotExist}`, ""},
			{`{key: example.com/x, operator: DoesNotExist, values: [a]}`, ""},
			{`{key: kubernetes.io/arch, operator: in, values: [amd64]}`, ""},
			{`{key: kubernetes.io/arch, values: [amd64]}`, ""},
			{`{operator: In, values: [amd64]}`, ""},
			{`{key: "", operator: In, values: [amd64]}`, ""},
			{`{key: kubernetes.io/arch, operator: In, values: amd64}`, ""},
			{`{key: kubernetes.io/arch, operator: In, value: [amd64]}`, ""},
			{`{key: kubernetes.io/arch, operator: In, values: [amd64, amd64]}`, ""},
			{`{key: kubernetes.io/arch, operator: In, values: [amd64, arm64], minValues: 2}`, ""},
			{`{key: kubernetes.io/arch, operator: In, values: [amd64], minValues: 2}`, ""},
			{`{key: kubernetes.io/arch, operator: In, values: [amd64], minValues: 0}`, ""},
			{`{key: karpenter.k8s.aws/instance-family, operator: Exists, minValues: 50}`, ""},
			{`{key: karpenter.k8s.aws/instance-family, operator: Exists, minValues: 51}`, ""},
			{`{key: karpenter.k8s.aws/instance-family, operator: Exists, minValues: "5"}`, ""},
			{`{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["4"]}`, ""},
			{`{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: [4]}`, ""},
			{`{key: karpenter.k8s.aws/instance-cpu, operator: Gte, values: ["4"]}`, ""},
			{`{key: karpenter.k8s.aws/instance-cpu, operator: Lte, values: ["64"]}`, ""},
			{`{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["0"]}`, ""},
			{`{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["-1"]}`, ""},
			{`{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["4", "8"]}`, ""},
			{`{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["4.5"]}`, ""},
			{`{key: karpenter.k8s.aws/instance-cpu, operator: Gt}`, ""},
			{`{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["4"]}, {key: karpenter.k8s.aws/instance-cpu, operator: Lt, values: ["64"]}`, ""},
			{`{key: karpenter.k8s.aws/instance-gpu-name, operator: In, values: [a10g]}`, ""},
			{`{key: karpenter.k8s.aws/instance-cpus, operator: Gt, values: ["4"]}`, ""},
			{`{key: karpenter.k8s.aws/x, operator: Exists}`, ""},
			{`{key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand, reserved]}`, ""},
			{`{key: karpenter.sh/capacity-type, operator: In, values: [spot, ondemand]}`, ""},
			{`{key: karpenter.sh/capacity-type, operator: In, values: [ondemand]}`, "Karpenter does not use such a pool: no capacity type is listed"},
			{`{key: karpenter.sh/nodepool, operator: In, values: [default]}`, ""},
			{`{key: karpenter.sh/registered, operator: Exists}`, ""},
			{`{key: node.karpenter.sh/x, operator: Exists}`, ""},
			{`{key: kubernetes.io/hostname, operator: Exists}`, ""},
			{`{key: kubernetes.io/os, operator: In, values: [linux]}`, ""},
			{`{key: beta.kubernetes.io/arch, operator: In, values: [amd64]}`, ""},
			{`{key: failure-domain.beta.kubernetes.io/zone, operator: In, values: [us-east-1a]}`, ""},
			{`{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a, us-east-1b]}`, ""},
			{`{key: topology.k8s.aws/zone-id, operator: In, values: [use1-az1]}`, ""},
			{`{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, t3.medium]}`, ""},
			{`{key: node.kubernetes.io/windows-build, operator: In, values: ["10.0.20348"]}`, ""},
			{`{key: node-role.kubernetes.io/infra, operator: Exists}`, ""},
			{`{key: kops.k8s.io/instancegroup, operator: Exists}`, ""},
			{`{key: company.example/team, operator: In, values: [a]}`, ""},
			{`{key: team, operator: In, values: [a]}`, ""},
			{`{key: "a b", operator: Exists}`, ""},
			{`{key: Example.com/x, operator: Exists}`, ""},
			{`{key: a/b/c, operator: Exists}`, ""},
			{`{key: team, operator: In, values: ["a b"]}`, "Karpenter does not use such a pool: no label has the value"},
			{`{key: team, operator: In, values: [""]}`, ""},
			{`{key: team, operator: In, values: [true]}`, ""},
		}},
		{"pools", `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
  HERE
`, []row{
			{`weight: 1`, ""},
			{`weight: 100`, ""},
			{`weight: 0`, ""},
			{`weight: 101`, ""},
			{`weight: "10"`, ""},
			{`weight: 1.5`, ""},
			{`limits: {cpu: 1000}`, ""},
			{`limits: {cpu: "1000", memory: 1000Gi}`, ""},
			{`limits: {cpu: 1e3}`, ""},
			{`limits: {cpu: 1000 cores}`, ""},
			{`limits: {nvidia.com/gpu: 8}`, ""},
			{`limits: {nodes: 10}`, ""},
			{`limits: {nodes: "10"}`, ""},
			{`limits: {nodes: 0}`, ""},
			{`limits: {nodes: 1.5}`, ""},
			{`limits: {cpu: -1}`, "no amount"},
			{`limits: {resources: {cpu: 1000}}`, ""},
			{`limits: {}`, ""},
			{`limits: null`, "nothing is no limit"},
			{`limits:`, "nothing is no limit"},
			{`limit: {cpu: 5}`, ""},
			{`replicas: 3`, ""},
			{`replicas: 0`, ""},
			{`replicas: -1`, ""},
			{"replicas: 3\n  weight: 5", ""},
			{`disruption: {consolidateAfter: 1m}`, ""},
			{`disruption: {consolidateAfter: Never}`, ""},
			{`disruption: {consolidateAfter: never}`, ""},
			{`disruption: {consolidateAfter: 1d}`, ""},
			{`disruption: {consolidateAfter: 1h30m}`, ""},
			{`disruption: {consolidateAfter: 1.5h}`, ""},
			{`disruption: {consolidateAfter: 30}`, ""},
			{`disruption: {consolidateAfter: "30"}`, ""},
			{`disruption: {consolidateAfter: ""}`, "nothing is the usual time"},
			{`disruption: {consolidateAfter: 0s}`, ""},
			{`disruption: {consolidateAfter: 0}`, ""},
			{`disruption: {consolidateAfter: 100ms}`, ""},
			{`disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 1m}`, ""},
			{`disruption: {consolidationPolicy: WhenUnderutilized, consolidateAfter: 1m}`, ""},
			{`disruption: {consolidationPolicy: Balanced, consolidateAfter: 1m}`, ""},
			{`disruption: {consolidationPolicy: WhenEmpty}`, ""},
			{`disruption: {}`, ""},
			{`disruption: {consolidateAfter: 1m, expireAfter: 720h}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: []}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "0"}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: 10%}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: 100%}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: 101%}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: 5}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "-5"}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "05"}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: 05%}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: 5.5%}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{reasons: [Drifted]}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", reasons: [Drifted, Empty, Underutilized]}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", reasons: [drifted]}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", reasons: [Drifted, Drifted]}]}`, "twice is once"},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", reasons: [Expired]}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "0 9 * * mon-fri", duration: 8h}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "@daily", duration: 10m}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "0 9 * * 1-5", duration: 8h0m}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "0 9 * * 1-5", duration: 8h0m0s}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "0 9 * * 1-5", duration: 480m0s}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "0 9 * * 1-5", duration: 0m}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "0 9 * * 1-5", duration: 30s}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "0 9 * * 1-5", duration: 8h30m15s}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "0 9 * * 1-5", duration: Never}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "0 9 * * 1-5"}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", duration: 8h}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "0 9 * *", duration: 8h}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "every day", duration: 8h}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "@every 1h", duration: 8h}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "@weekly", duration: 8h}]}`, ""},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "61 9 * * *", duration: 8h}]}`, "Karpenter allows nothing where it cannot read the schedule"},
			{`disruption: {consolidateAfter: 1m, budgets: [{nodes: "1", schedule: "TZ=Europe/Paris 0 9 * * *", duration: 8h}]}`, "Karpenter allows nothing where it cannot read the schedule"},
			{`disruptions: {consolidateAfter: 1m}`, ""},
			{`provider: {}`, ""},
			{`ttlSecondsUntilExpired: 5`, ""},
		}},
		{"templates", `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
      HERE
`, []row{
			{`expireAfter: 720h`, ""},
			{`expireAfter: Never`, ""},
			{`expireAfter: 30d`, ""},
			{`expireAfter: 0s`, ""},
			{`terminationGracePeriod: 48h`, ""},
			{`terminationGracePeriod: Never`, ""},
			{`terminationGracePeriod: 30`, ""},
			{`taints: [{key: a, effect: NoSchedule}]`, ""},
			{`taints: [{key: a, value: b, effect: NoExecute}]`, ""},
			{`taints: [{key: a, value: "", effect: NoExecute}]`, "an empty value is none"},
			{`taints: [{key: a, value: true, effect: NoExecute}]`, ""},
			{`taints: [{key: a, value: "a/b", effect: NoExecute}]`, "kubelet does not register a node with such a taint"},
			{`taints: [{key: a, effect: NoSchedul}]`, ""},
			{`taints: [{key: a}]`, ""},
			{`taints: [{effect: NoSchedule}]`, ""},
			{`taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]`, "Karpenter does not use such a pool"},
			{`taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}]`, ""},
			{`startupTaints: [{key: a, effect: NoSchedule}]`, ""},
			{`startupTaints: [{key: a, operator: Exists}]`, ""},
			{`kubelet: {maxPods: 5}`, ""},
			{`labels: {a: b}`, ""},
			{`resources: {requests: {cpu: 1}}`, ""},
		}},
		{"references", `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  HERE
`, []row{
			{`weight: 7`, ""},
		}},
		{"labels", `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    metadata: {HERE}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
`, []row{
			{`labels: {team: a}`, ""},
			{`labels: {team: ""}`, ""},
			{`labels: {team: true}`, ""},
			{`labels: {team: "a b"}`, ""},
			{`labels: {karpenter.sh/capacity-type: spot}`, ""},
			{`labels: {karpenter.sh/nodepool: default}`, ""},
			{`labels: {karpenter.sh/x: a}`, ""},
			{`labels: {kubernetes.io/hostname: a}`, ""},
			{`labels: {kubernetes.io/os: linux}`, ""},
			{`labels: {node-role.kubernetes.io/worker: ""}`, ""},
			{`labels: {karpenter.k8s.aws/instance-family: m5}`, ""},
			{`labels: {karpenter.k8s.aws/x: m5}`, ""},
			{`annotations: {example.com/owner: "somebody, somewhere"}`, ""},
			{`annotations: {example.com/owner: 5}`, ""},
			{`name: x`, ""},
			{`namespace: x`, ""},
		}},
		{"overlays", `
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: dear}
spec:
  requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}]
  HERE
`, []row{
			{`price: "1.5"`, ""},
			{`price: 1.5`, ""},
			{`price: "-1.5"`, ""},
			{`price: "1.5$"`, ""},
			{`price: ".5"`, ""},
			{`priceAdjustment: "+10%"`, ""},
			{`priceAdjustment: "-10%"`, ""},
			{`priceAdjustment: "10%"`, ""},
			{`priceAdjustment: "-110%"`, ""},
			{`priceAdjustment: "-0.05"`, ""},
			{`priceAdjustment: "+.05"`, ""},
			{`priceAdjustment: -0.05`, ""},
			{`capacity: {example.com/gpu: 4}`, ""},
			{`capacity: {example.com/gpu: "4"}`, ""},
			{`capacity: {cpu: 4}`, ""},
			{`capacity: {hugepages-2Mi: 100Mi}`, ""},
			{`weight: 10`, ""},
			{`weight: 10001`, ""},
			{`weight: 0`, ""},
		}},
		{"claims", `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: default-abcde, labels: {karpenter.sh/nodepool: default}}
spec:
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  requirements: [{key: karpenter.sh/nodepool, operator: In, values: [default]}, {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}]
  HERE
`, []row{
			{`resources: {requests: {cpu: 500m, pods: "5"}}`, ""},
			{`expireAfter: 720h`, ""},
			{`expireAfter: Never`, ""},
			{`terminationGracePeriod: 1h`, ""},
			{`taints: [{key: a, effect: NoSchedule}]`, ""},
		}},
	}
}
