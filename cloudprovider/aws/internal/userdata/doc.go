// Package userdata writes what an EC2 instance is told at its first boot so that its kubelet joins a cluster: a shell script
// in a MIME archive for AL2 and Ubuntu, a NodeConfig for AL2023, TOML for Bottlerocket, PowerShell for Windows, and for
// custom images the user's own text, verbatim. What the user wrote is merged in, and nothing of it is dropped.
//
// The output is a function of the input: maps are written in the order of their keys, so that equal nodes get equal bytes
// and share a launch template.
package userdata
