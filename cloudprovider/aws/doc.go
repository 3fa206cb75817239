// Package aws buys nodes from EC2. It implements the interfaces of package cloudprovider on the AWS SDK for Go v2.
package aws
