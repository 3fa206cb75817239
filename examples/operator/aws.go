package main

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

// openAWS returns EC2, with the credentials of AWS's default chain.
func (f *flags) openAWS(ctx context.Context, api client.Client) (*aws.Provider, error) {
	return aws.New(ctx, aws.Options{Cluster: f.cluster, Region: f.region, Queue: f.queue, StatusChecks: true, Classes: classes{api}})
}

// classes finds EC2NodeClasses in the cluster.
type classes struct{ api client.Client }

// NodeClass reads a node class from the API server.
func (c classes) NodeClass(ctx context.Context, name string) (nodeclass.NodeClass, error) {
	var object unstructured.Unstructured
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"})
	if err := c.api.Get(ctx, client.ObjectKey{Name: name}, &object); err != nil {
		return nodeclass.NodeClass{}, &cloudprovider.Error{Code: cloudprovider.ErrNotReady, Op: "node class", Subject: name, Err: err}
	}
	data, err := object.MarshalJSON()
	if err != nil {
		return nodeclass.NodeClass{}, err
	}
	return nodeclass.Decode(data)
}
