package crds_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	aws "github.com/aws/karpenter-provider-aws/pkg/apis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/scheduling"
)

// schema is what an API server with Karpenter's resources checks objects of a kind by.
type schema struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

func schemas(t *testing.T) map[string]schema {
	t.Helper()
	out := map[string]schema{}
	for _, crd := range aws.CRDs {
		for _, v := range crd.Spec.Versions {
			var internal apiextensions.CustomResourceValidation
			require.NoError(t, apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.Schema.DeepCopy(), &internal, nil))
			structural, err := structuralschema.NewStructural(internal.OpenAPIV3Schema)
			require.NoError(t, err)
			validator, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
			require.NoError(t, err)
			out[crd.Spec.Group+"/"+v.Name+" "+crd.Spec.Names.Kind] = schema{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
		}
	}
	return out
}

// refused is what an API server says against a manifest that kubectl sends it, with the strict validation of fields that is kubectl's
// default.
func refused(ctx context.Context, all map[string]schema, text string) error {
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return err
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil { // integers stay integers
		return err
	}
	s, ok := all[fmt.Sprint(object["apiVersion"], " ", object["kind"])]
	if !ok {
		return fmt.Errorf("no schema for %v %v", object["apiVersion"], object["kind"])
	}
	if unknown := pruning.PruneWithOptions(object, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}); len(unknown) > 0 {
		return fmt.Errorf("unknown fields %v", unknown)
	}
	defaulting.Default(object, s.structural)
	problems := validation.ValidateCustomResource(nil, object, s.validator)
	problems = append(problems, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if len(problems) == 0 {
		problems, _ = s.rules.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	}
	return problems.ToAggregate()
}

// here is what reading and planning say against it.
func here(market *pipeline.Market, text string) error {
	read, err := manifests.Parse([]manifests.File{{Name: "x.yaml", Data: []byte(text)}}, &manifests.Options{Classes: pipeline.NodeClassDecoders()})
	if err != nil {
		return err
	}
	snapshot, _, err := pipeline.Snapshot(read, market)
	if err != nil {
		return err
	}
	_, err = scheduling.Compile(snapshot, nil)
	return err
}

// row is one manifest: what stands in the place of HERE in its table's text. Both sides must say the same of it, unless differs says
// why not.
type row struct{ text, differs string }

type table struct {
	name, template string
	rows           []row
}

// TestManifestsAgreeWithTheSchemas holds what the schemas of Karpenter's resources say of manifests against what reading says: a
// manifest that a cluster takes is read, and one that it refuses is refused.
func TestManifestsAgreeWithTheSchemas(t *testing.T) {
	all := schemas(t)
	market, err := pipeline.EC2Market("us-east-1")
	require.NoError(t, err)
	count, bad := 0, 0
	for _, table := range slices.Concat(pools(), classes()) {
		require.NoError(t, refused(t.Context(), all, strings.Replace(table.template, "HERE", "", 1)), "%s: the template by itself", table.name)
		for _, r := range table.rows {
			text := strings.Replace(table.template, "HERE", r.text, 1)
			theirs, ours := refused(t.Context(), all, text), here(market, text)
			count++
			if theirs != nil {
				bad++
			}
			switch same := (theirs == nil) == (ours == nil); {
			case r.differs != "" && same:
				assert.Failf(t, "they agree now", "%s: %s: %v / %v", table.name, r.text, theirs, ours)
			case r.differs == "" && !same:
				assert.Failf(t, "not what the schema says", "%s: %s\nserver: %v\nhere:   %v", table.name, r.text, theirs, ours)
			}
			if problem := (*manifests.Problem)(nil); ours != nil && errors.As(ours, &problem) {
				assert.NotEmpty(t, problem.Object, "%s: %s: %v", table.name, r.text, ours)
				assert.NotZero(t, problem.Position.Line, "%s: %s: %v", table.name, r.text, ours)
				assert.NotEmpty(t, problem.Path, "%s: %s: %v", table.name, r.text, ours)
			}
		}
	}
	assert.Greater(t, bad, count/4)
	assert.Greater(t, count-bad, count/4)
}
