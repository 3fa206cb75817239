// Package ec2 turns what EC2 says about its instance types into what Kubernetes sees: labels,
// capacity, and what is left for pods. It covers every AMI family and kubelet configuration. The
// source is the embedded catalogue or a live DescribeInstanceTypes answer.
//
// The arithmetic is that of the AWS provider of Karpenter v1. Where an older rule applies, a field
// of [Settings] enables it, and [Settings.Notes] says so. Functions are pure and safe for
// concurrent use.
package ec2
