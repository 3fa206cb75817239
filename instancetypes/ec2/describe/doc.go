// Package describe holds what EC2 says about an instance type, and reads it from the answer of DescribeInstanceTypes.
//
// A [Description] has facts only, no prices and no zones. What these facts mean for Kubernetes (labels, allocatable
// resources) is the business of package ec2.
package describe
