// Package crds has the resources that the operator reads and writes.
package crds

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	kwok "sigs.k8s.io/karpenter/kwok/apis"
	"sigs.k8s.io/karpenter/pkg/apis"
)

// Install puts Karpenter's resources into a cluster, or brings them up to date, and returns when they can be used.
func Install(cfg *rest.Config) error {
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range slices.Concat(apis.CRDs, kwok.CRDs) {
		list = append(list, crd.DeepCopy()) // what installs them writes to them
	}
	if _, err := envtest.InstallCRDs(cfg, envtest.CRDInstallOptions{CRDs: list}); err != nil {
		return fmt.Errorf("crds: %w", err)
	}
	return nil
}
