package idempotent_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/idempotent"
)

// BenchmarkFile measures a journal of 500 machines in a file: one more launch, and one read.
func BenchmarkFile(b *testing.B) {
	j := &idempotent.Journal{Store: idempotent.NewFile(filepath.Join(b.TempDir(), "journal.json")), Now: noon}
	machines := map[string]string{}
	launch := func(token string) {
		c := claim(token)
		_, err := j.Create(b.Context(), c, nil, func(context.Context) (cloudprovider.Launch, error) {
			choices, err := idempotent.Resolve(c, catalogue())
			if err != nil {
				return cloudprovider.Launch{}, err
			}
			machines[token] = fmt.Sprint("m-", len(machines))
			i := choices[0].Instance(c, machines[token], noon())
			for n := range 15 {
				i.Labels[fmt.Sprintf("karpenter.k8s.aws/instance-label-%d", n)] = "some value"
			}
			i.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi")}
			return cloudprovider.Launch{Instance: i}, nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for n := range 500 {
		launch(fmt.Sprint("token-", n))
	}
	b.Run("Create", func(b *testing.B) {
		for b.Loop() {
			launch(fmt.Sprint("more-", len(machines)))
		}
	})
	b.Run("Instances", func(b *testing.B) {
		for b.Loop() {
			if _, err := j.Instances(b.Context(), idempotent.Machine{ID: machines["token-7"], Token: "token-7"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
