// Package ec2 turns what EC2 says about its instance types into what Kubernetes makes of them: labels, capacity, and
// what is left for pods, for every AMI family and kubelet configuration, with the embedded catalogue or a live
// DescribeInstanceTypes answer as the source.
//
// The arithmetic is that of the AWS provider of Karpenter v1; where an older rule applies, a field of [Settings] turns
// it on and [Settings.Notes] says so. Functions are pure and safe for concurrent use.
package ec2
