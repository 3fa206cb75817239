package sandbox

import (
	"context"
	"errors"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joinery-sdk/joinery/examples/operator/deploy"
)

// asOperator is the config of an administrator as that of the operator's service account, which
// gets its rights first.
func asOperator(ctx context.Context, cfg *rest.Config, api client.Client) (*rest.Config, error) {
	for documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(deploy.RBAC), 4096); ; {
		var object unstructured.Unstructured
		if err := documents.Decode(&object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if err := api.Create(ctx, &object); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:joinery:operator",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:joinery", "system:authenticated"},
	}
	return cfg, nil
}
