// Package deploy is how the operator gets into a cluster: its rights, as the tests have it, and a Deployment to start from.
package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	_ "embed"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

//go:embed rbac.yaml
var rbac string

// As is the config of an administrator as that of the operator's service account, which gets its rights first.
func As(ctx context.Context, cfg *rest.Config, api client.Client) (*rest.Config, error) {
	for documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(rbac), 4096); ; {
		var object unstructured.Unstructured
		if err := documents.Decode(&object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("deploy: %w", err)
		}
		if err := api.Create(ctx, &object); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("deploy: %w", err)
		}
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:joinery:operator",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:joinery", "system:authenticated"},
	}
	return cfg, nil
}
