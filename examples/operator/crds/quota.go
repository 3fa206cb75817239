package crds

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// capacityQuotas defines CapacityQuotas for clusters that do not have them from cluster-autoscaler,
// whose definition cannot be imported. Of the rules of its schema it has those of the limits;
// scheduling/capacityquota checks all of them.
func capacityQuotas() *apiextensionsv1.CustomResourceDefinition {
	const group, version = "autoscaling.x-k8s.io", "v1beta1"
	object := func(fields map[string]apiextensionsv1.JSONSchemaProps, required ...string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields, Required: required}
	}
	most, whatever := int64(20), true
	amounts := apiextensionsv1.JSONSchemaProps{Type: "object", MaxProperties: &most, AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
		Schema: &apiextensionsv1.JSONSchemaProps{XIntOrString: true, AnyOf: []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}, Pattern: `^[0-9]+([kMGTPE]i?)?$`},
	}}
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &whatever}
	limits := object(map[string]apiextensionsv1.JSONSchemaProps{"resources": amounts}, "resources")
	schema := object(map[string]apiextensionsv1.JSONSchemaProps{
		"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"},
		"spec":   object(map[string]apiextensionsv1.JSONSchemaProps{"selector": open, "limits": limits}, "limits"),
		"status": open,
	}, "spec")
	return &apiextensionsv1.CustomResourceDefinition{
		// Groups of Kubernetes ask for a word on who approved the API; this is a copy for tests.
		ObjectMeta: metav1.ObjectMeta{Name: "capacityquotas." + group, Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for tests"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "capacityquotas", Singular: "capacityquota", Kind: "CapacityQuota", ListKind: "CapacityQuotaList", ShortNames: []string{"cq"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}
