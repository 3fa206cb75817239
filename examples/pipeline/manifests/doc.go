// Package manifests reads Kubernetes manifests into one [Snapshot] of typed objects: YAML or JSON,
// from files, directories or a stream. For every mistake it names the file, the line and the field.
//
// # Strictness
//
// These are errors: a field that the kind does not have, a value of the wrong type, a key given
// twice, a second object of the same name (in the files of a directory, the last one counts), and
// anything that an API server would refuse for reasons that matter to placement. All are reported,
// with the name that was probably meant. What a live cluster adds is accepted: status, managed
// fields (which are dropped), later fields of status. Kinds that planning ignores are counted in a
// note.
//
// # YAML
//
// YAML is read as kubectl does: YAML 1.1 words such as yes and off are booleans, documents end at
// lines that start with ---, and a document that starts with a brace is JSON. Anchors and merge
// keys are resolved.
//
// # Controllers
//
// Deployment, ReplicaSet, StatefulSet, ReplicationController, Job and CronJob stand for the pods
// that they still have to create ([Workload]): the wanted number minus the live pods in the same
// manifests. So a live export with both counts nothing twice.
//
//   - A live pod belongs to a controller by its owner reference. If the ReplicaSet or Job between
//     pod and controller is missing, the pod's name and pod-template-hash show to which controller
//     it belongs.
//   - Pods that have finished or are being deleted do not count, but they keep their name.
//   - A ReplicaSet whose Deployment is present adds nothing of its own.
//   - A Job wants the lesser of parallelism and the number missing from completions.
//   - A CronJob wants one run of its job, unless a Job or a pod of such a run is present.
//   - Suspended and finished ones want nothing.
//   - If a HorizontalPodAutoscaler has the controller as its target, the controller wants at least
//     minReplicas and at most maxReplicas, as in a cluster. 0 replicas stay 0. A note says so.
//
// ResourceQuotas do not change what is planned. A note names each one that the pods would exceed,
// counted as an API server counts them. Another note names the others.
//
// # Limits
//
// Input is at most 1 GiB, objects nest at most 100 levels deep, aliases may add at most 100,000
// values to a document, and there are at most [MaxPods] pods. Beyond that, reading ends with an
// error, in bounded time and memory.
package manifests
