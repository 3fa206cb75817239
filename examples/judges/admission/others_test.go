package admission_test

func others() []table {
	return []table{
		{"deployments", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: web}]}
  @
`, []row{
			{`replicas: 3`, ""},
			{`replicas: "3"`, ""},
			{`replicas: 3.0`, ""},
			{`replicas: -1`, ""},
			{`replicas: 0`, ""},
			{`replicas: null`, ""},
			{`replicas: 3000000000`, ""},
			{`replica: 3`, ""},
			{`strategy: {type: Recreate}`, ""},
			{`strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}`, ""},
			{`strategy: {type: Recreates}`, onlyPlanning},
			{`minReadySeconds: 5`, ""},
			{`paused: true`, ""},
			{`revisionHistoryLimit: 2`, ""},
			{`progressDeadlineSeconds: 600`, ""},
		}},
		{"pod templates", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: web}]
      @
`, []row{
			{`restartPolicy: Always`, ""},
			{`restartPolicy: Never`, ""},
			{`nodeName: n1`, ""},
			{`affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: ""}]}}`, ""},
			{`tolerations: [{key: a, effect: NoExecut}]`, ""},
			{`activeDeadlineSeconds: 5`, ""},
		}},
		{"stateful sets", `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: db}]}
  @
`, []row{
			{`replicas: 3`, ""},
			{`replicas: -1`, ""},
			{`podManagementPolicy: Parallel`, ""},
			{`ordinals: {start: 5}`, ""},
			{`ordinals: {start: -5}`, ""},
			{`volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]`, ""},
			{`volumeClaimTemplates: [{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, creationTimestamp: null}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}, status: {phase: Pending}}]`, ""},
			{`volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1GB}}}}]`, ""},
			{`persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Delete}`, ""},
		}},
		{"daemon sets", `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: agent}]}
  @
`, []row{
			{`updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}`, ""},
			{`replicas: 3`, ""},
			{`minReadySeconds: 3`, ""},
		}},
		{"jobs", `
apiVersion: batch/v1
kind: Job
metadata: {name: load}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: load}]}}
  @
`, []row{
			{`parallelism: 5`, ""},
			{`parallelism: -5`, ""},
			{`completions: 5`, ""},
			{`completions: -5`, ""},
			{"completions: 5\n  completionMode: Indexed", ""},
			{`backoffLimit: 0`, ""},
			{`ttlSecondsAfterFinished: 100`, ""},
			{`suspend: true`, ""},
			{`activeDeadlineSeconds: 100`, ""},
			{`paralelism: 5`, ""},
		}},
		{"cron jobs", `
apiVersion: batch/v1
kind: CronJob
metadata: {name: load}
spec:
  schedule: "*/5 * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: load}]}}}}
  @
`, []row{
			{`concurrencyPolicy: Forbid`, ""},
			{`concurrencyPolicy: Sometimes`, onlyPlanning},
			{`suspend: true`, ""},
			{`timeZone: Etc/UTC`, ""},
			{`startingDeadlineSeconds: 100`, ""},
		}},
		{"nodes", `
apiVersion: v1
kind: Node
metadata: {name: n1}
spec:
  @
`, []row{
			{`taints: [{key: a, effect: NoSchedule}]`, ""},
			{`taints: [{key: a, effect: NoSchedul}]`, ""},
			{`taints: [{key: a}]`, ""},
			{`taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule, value: b}]`, onlyPlanning},
			{`taints: [{key: a, effect: NoSchedule, value: "a b"}]`, ""},
			{`taints: [{key: a, effect: NoExecute, timeAdded: "2024-01-01T00:00:00Z"}]`, ""},
			{`unschedulable: true`, ""},
			{`providerID: aws:///us-east-1a/i-1`, ""},
			{`podCIDR: 10.0.0.0/24`, ""},
		}},
		{"node status", `
apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  @
`, []row{
			{`capacity: {cpu: "4", memory: 8Gi, pods: "110", ephemeral-storage: 20Gi, hugepages-2Mi: "0", attachable-volumes-aws-ebs: "25"}`, ""},
			{`capacity: {cpu: x}`, ""},
			{`capacity: {cpu: -1}`, ""},
			{`conditions: [{type: Ready, status: "True"}]`, ""},
		}},
		{"disruption budgets", `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  @
`, []row{
			{`minAvailable: 1`, ""},
			{`minAvailable: 50%`, ""},
			{`minAvailable: "50%"`, ""},
			{`minAvailable: "1"`, ""},
			{`minAvailable: 0`, ""},
			{`minAvailable: -1`, ""},
			{`minAvailable: 101%`, ""},
			{`minAvailable: 50.5%`, ""},
			{`minAvailable: 1.5`, ""},
			{`minAvailable: half`, ""},
			{"maxUnavailable: 1\n  minAvailable: 1", ""},
			{`maxUnavailable: 0%`, ""},
			{`maxUnavailable: 100%`, ""},
			{`unhealthyPodEvictionPolicy: AlwaysAllow`, ""},
			{`unhealthyPodEvictionPolicy: Always`, ""},
		}},
		{"priority classes", `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
@
`, []row{
			{`globalDefault: true`, ""},
			{`preemptionPolicy: Never`, ""},
			{`preemptionPolicy: never`, ""},
			{`description: high`, ""},
			{`priority: 5`, ""},
		}},
		{"priority values", `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
@
`, []row{
			{`value: 1000000000`, ""},
			{`value: 1000000001`, ""},
			{`value: -5`, ""},
			{`value: "5"`, ""},
			{`value: 5000000000`, ""},
		}},
		{"limit ranges", `
apiVersion: v1
kind: LimitRange
metadata: {name: usual}
spec:
  limits:
  - type: Container
    @
`, []row{
			{"default: {cpu: 1}\n    defaultRequest: {cpu: 500m}", ""},
			{"default: {cpu: 1}\n    defaultRequest: {cpu: 2}", ""},
			{"max: {cpu: 1}\n    min: {cpu: 2}", onlyPlanning},
			{"max: {cpu: 1}\n    default: {cpu: 2}", onlyPlanning},
			{`max: {cpu: -1}`, "no container could run, so it is a slip of the pen"},
			{`maxLimitRequestRatio: {cpu: 2}`, ""},
			{`max: {gpu: 1}`, onlyPlanning},
		}},
		{"storage classes", `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: gp3}
provisioner: ebs.csi.aws.com
@
`, []row{
			{`volumeBindingMode: WaitForFirstConsumer`, ""},
			{`volumeBindingMode: waitForFirstConsumer`, ""},
			{`reclaimPolicy: Retain`, ""},
			{`reclaimPolicy: Keep`, onlyPlanning},
			{`parameters: {type: gp3, iops: "3000"}`, ""},
			{`parameters: {type: gp3, iops: 3000}`, ""},
			{`allowVolumeExpansion: true`, ""},
			{`allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [us-east-1a]}]}]`, ""},
			{`allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: []}]}]`, ""},
			{`allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}]}]`, ""},
			{`mountOptions: [debug]`, ""},
		}},
		{"claims of volumes", `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 10Gi}}
  @
`, []row{
			{`storageClassName: gp3`, ""},
			{`storageClassName: ""`, ""},
			{`volumeMode: Block`, ""},
			{`volumeName: pv-1`, ""},
			{`selector: {matchLabels: {a: b}}`, ""},
			{`storageClass: gp3`, ""},
		}},
		{"volumes", `
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-1}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}
  @
`, []row{
			{`nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}]}]}}`, ""},
			{`nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In}]}]}}`, ""},
			{`nodeAffinity: {required: {nodeSelectorTerms: []}}`, onlyPlanning},
			{`persistentVolumeReclaimPolicy: Retain`, ""},
			{`claimRef: {namespace: default, name: data}`, ""},
		}},
		{"runtime classes", `
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: gvisor}
handler: runsc
@
`, []row{
			{`overhead: {podFixed: {cpu: 100m, memory: 64Mi}}`, ""},
			{`overhead: {podFixed: {cpu: -100m}}`, ""},
			{`overhead: {cpu: 100m}`, ""},
			{`scheduling: {nodeSelector: {a: b}, tolerations: [{key: a, operator: Exists}]}`, ""},
			{`scheduling: {nodeSelector: {a: "b c"}}`, ""},
			{`scheduling: {tolerations: [{key: a, operator: Exist}]}`, ""},
		}},
		{"replication controllers", `
apiVersion: v1
kind: ReplicationController
metadata: {name: web}
spec:
  selector: {app: web}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: web}]}
  @
`, []row{
			{`replicas: 2`, ""},
			{`replicas: -2`, ""},
			{`minReadySeconds: 2`, ""},
		}},
		{"csi nodes", `
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: n1}
spec:
  drivers:
  - name: ebs.csi.aws.com
    nodeID: n1
    @
`, []row{
			{`allocatable: {count: 25}`, ""},
			{`allocatable: {count: "25"}`, ""},
			{`allocatable: {count: -1}`, ""},
			{`topologyKeys: [topology.ebs.csi.aws.com/zone]`, ""},
		}},
	}
}
