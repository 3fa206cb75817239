// Package crds has the resources that the operator reads and writes.
package crds

import (
	"fmt"
	"maps"
	"slices"

	aws "github.com/aws/karpenter-provider-aws/pkg/apis"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	kwok "sigs.k8s.io/karpenter/kwok/apis"
	"sigs.k8s.io/karpenter/pkg/apis"
)

// Install puts Karpenter's resources, the node classes of its providers for AWS and kwok, and
// CapacityQuotas into a cluster, or brings them up to date, and returns when they can be used.
func Install(cfg *rest.Config) error {
	list := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range slices.Concat(aws.CRDs, kwok.CRDs, apis.CRDs, []*apiextensionsv1.CustomResourceDefinition{capacityQuotas()}) { // the AWS provider has stricter ones of the last, for its cloud only
		list[crd.Name] = crd.DeepCopy() // what installs them writes to them
	}
	if _, err := envtest.InstallCRDs(cfg, envtest.CRDInstallOptions{CRDs: slices.Collect(maps.Values(list))}); err != nil {
		return fmt.Errorf("crds: %w", err)
	}
	return nil
}
