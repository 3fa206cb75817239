// Package userdata writes what an EC2 instance needs at its first boot so that its kubelet joins a
// cluster. It is a shell script in a MIME archive for AL2 and Ubuntu, a NodeConfig for AL2023, TOML
// for Bottlerocket, PowerShell for Windows, and the user's own text, verbatim, for custom images.
// The user's own user data is merged in, and nothing of it is dropped.
//
// The output depends only on the input. Maps are written in the order of their keys, so equal nodes
// get equal bytes and share a launch template.
package userdata
