// Package manifests reads Kubernetes manifests, YAML or JSON, files or directories or a stream, into one [Snapshot] of
// typed objects, and says of every mistake in which file, on which line and at which field it stands.
//
// # Strictness
//
// A field that the kind does not have, a value of the wrong type, a key given twice, a second object of the same name,
// and what an API server would refuse for reasons that matter to placement are errors. All are reported, with the name
// that was probably meant. What a live cluster adds passes: status, managed fields (which are dropped), later fields of
// status. Kinds that planning does not look at are counted in a note.
//
// # YAML
//
// Read as kubectl does: YAML 1.1 words such as yes and off are booleans, documents end at lines that start with ---,
// JSON is read wherever a document starts with a brace. Anchors and merge keys are resolved.
//
// # Controllers
//
// Deployment, ReplicaSet, StatefulSet, ReplicationController, Job and CronJob stand for the pods that they still have
// to create ([Workload]): the wanted number less the live pods that the same manifests hold, so that a live export with
// both counts nothing twice. A live pod belongs to a controller by its owner reference; where the ReplicaSet or Job
// between them is missing, by the name and pod-template-hash that controllers give. Pods that finished or are being
// deleted do not count, except that they keep their name. A ReplicaSet whose Deployment is there adds nothing of its own.
// A Job wants the lesser of parallelism and what is missing from completions; a CronJob wants one run of its job, unless
// a Job or a pod of such a run is there. Suspended and finished ones want nothing.
//
// # Limits
//
// Input is at most 1 GiB, objects nest at most 100 levels deep, aliases may grow a document by 100,000 values, and the
// pods are at most [MaxPods]. Beyond that reading ends with an error in bounded time and memory.
package manifests
