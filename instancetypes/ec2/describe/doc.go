// Package describe has what EC2 says about an instance type, and reads it from the answer of
// DescribeInstanceTypes.
//
// A [Description] has only facts, no prices and no zones. Package ec2 knows what these facts mean
// for Kubernetes (labels, allocatable resources).
package describe
