// Package kubejudge replays the bindings of a plan through kube-scheduler's own filter plugins.
package kubejudge

import (
	_ "k8s.io/client-go/informers"
	_ "k8s.io/client-go/kubernetes/fake"
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	_ "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)
