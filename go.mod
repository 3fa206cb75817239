module github.com/joinery-sdk/joinery

go 1.26.0

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/cobra v1.10.2 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	go.yaml.in/yaml/v2 v2.4.3 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
	k8s.io/api v0.36.3 // indirect
	k8s.io/apimachinery v0.36.3 // indirect
	k8s.io/component-helpers v0.36.3 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)
