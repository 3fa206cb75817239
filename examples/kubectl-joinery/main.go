// Kubectl-joinery is a plugin for kubectl: it reads a running cluster and says why pods are
// pending, which nodes they need, and which nodes could be given back. It writes nothing to the
// cluster.
//
//	go install ./examples/kubectl-joinery
//	kubectl joinery why-pending web-0 -n shop
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	consolidate "github.com/joinery-sdk/joinery/examples/consolidate/program"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/live"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	provision "github.com/joinery-sdk/joinery/examples/provision/program"
	"github.com/joinery-sdk/joinery/requirements"
)

func main() {
	flags := genericclioptions.NewConfigFlags(true)
	os.Exit(inputs.End(os.Stderr, command(flags, connect(flags)).Execute()))
}

// Requests to the API server that are allowed at once and in a second: an export is some thirty
// lists, each of them in pages.
const (
	requestsAtOnce    = 100
	requestsPerSecond = 50
)

// connect gives the clients of the cluster that the flags name.
func connect(flags *genericclioptions.ConfigFlags) func() (live.Cluster, error) {
	return func() (live.Cluster, error) {
		config, err := flags.ToRESTConfig()
		if err != nil {
			return live.Cluster{}, err
		}
		config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
		kinds, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return live.Cluster{}, err
		}
		objects, err := dynamic.NewForConfig(config)
		return live.Cluster{Discovery: kinds, Objects: objects}, err
	}
}

// command is the plugin for clusters that connect reaches.
func command(flags *genericclioptions.ConfigFlags, connect func() (live.Cluster, error)) *cobra.Command {
	root := inputs.Command(&cobra.Command{
		Use:   "kubectl-joinery",
		Short: "why pods are pending, which nodes they need, and which nodes could be given back",
		Long: `Joinery reads the cluster that kubeconfig or the flags name, and plans. It never writes to the cluster. It leaves out what
the account may not list, and says so.`,
		Example: `  kubectl joinery why-pending                   # all pods without a node, and why
  kubectl joinery why-pending web-0 -n shop     # one of them
  kubectl joinery plan --diff new-pool.yaml     # what another pool would do
  kubectl joinery consolidate -o wide           # which nodes to give back
  kubectl joinery export > cluster.yaml         # what the programs read with -f`,
	}, func(cmd *cobra.Command, _ io.Writer) error { return cmd.Help() })
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl joinery"}
	usual := root.Args
	root.Args = func(c *cobra.Command, args []string) error {
		if usual(c, args) == nil {
			return nil
		}
		var names []string
		for _, sub := range c.Commands() {
			names = append(names, sub.Name())
		}
		hint := ""
		if near, ok := requirements.Nearest(args[0], names); ok {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		return inputs.Bad(fmt.Errorf("%q: no such command%s (see %s --help)", args[0], hint, c.CommandPath()))
	}
	flags.AddFlags(root.PersistentFlags())
	read := &reader{connect: connect}
	root.AddCommand(whyPending(flags, read), everywhere(program(provision.Command(read), "plan", read)), everywhere(program(consolidate.Command(read), "consolidate", read)), everywhere(export(read)))
	return root
}

// program makes a program of this repository a command that plans the cluster, unless -f names
// files; "-" is the cluster.
func program(cmd *cobra.Command, name string, read *reader) *cobra.Command {
	cmd.Use, cmd.Example = name, ""
	cmd.Flag("filename").Usage = "plan a file or directory with YAML or JSON manifests instead of the cluster; - is the cluster (repeatable)"
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("filename") {
			if err := cmd.Flags().Set("filename", "-"); err != nil {
				return err
			}
		} else if err := noCluster(cmd); err != nil {
			return err
		}
		read.cmd = cmd
		err := run(cmd, args)
		if read.err != nil { // the cluster cannot be read, which is no fault of the input
			return read.err
		}
		return err
	}
	return cmd
}

// noCluster refuses flags that choose a cluster if none is read.
func noCluster(cmd *cobra.Command) (err error) {
	files, _ := cmd.Flags().GetStringArray("filename")
	if diff := cmd.Flag("diff"); slices.Contains(files, "-") || diff != nil && diff.Value.String() == "-" {
		return nil
	}
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Name != "namespace" && err == nil {
			err = inputs.Bad(fmt.Errorf("--%s: -f names files, so no cluster is read; leave it out, or add -f -", f.Name))
		}
	})
	return err
}

// everywhere refuses a namespace: a plan of one namespace would take the nodes of all for its own.
func everywhere(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := noNamespace(cmd, "a plan has the pods of all namespaces; leave it out"); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

func noNamespace(cmd *cobra.Command, why string) error {
	if f := cmd.Flag("namespace"); f.Changed {
		return inputs.Bad(fmt.Errorf("--namespace %q: %s", f.Value, why))
	}
	return nil
}

func whyPending(flags *genericclioptions.ConfigFlags, read *reader) *cobra.Command {
	cmd := program(provision.Command(read), "why-pending [POD]", read)
	cmd.Short = "say why pods have no node, and what would help"
	cmd.Long = "Why-pending plans all pods without a node. For one pod, or for each, it says where the pod will go, or what stops it and which change would help. Each change was tried."
	cmd.Args = cobra.MaximumNArgs(1)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			if err := noNamespace(cmd, "it says where a pod is; name the pod, too"); err != nil {
				return err
			}
		} else {
			pod := strings.TrimPrefix(strings.TrimPrefix(args[0], "pods/"), "pod/")
			if !strings.Contains(pod, "/") {
				namespace, err := namespaceOf(flags)
				if err != nil {
					return inputs.Bad(err)
				}
				pod = namespace + "/" + pod
			}
			if err := cmd.Flags().Set("explain", pod); err != nil {
				return err
			}
		}
		return run(cmd, nil)
	}
	return cmd
}

// namespaceOf is that of the flag, or else of the context.
func namespaceOf(flags *genericclioptions.ConfigFlags) (string, error) {
	if flags.Namespace != nil && *flags.Namespace != "" {
		return *flags.Namespace, nil
	}
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if namespace == "" {
		namespace = corev1.NamespaceDefault
	}
	return namespace, err
}

func export(read *reader) *cobra.Command {
	var format string
	cmd := inputs.Command(&cobra.Command{
		Use:   "export",
		Short: "print all objects that affect plans",
		Long:  "Export prints all objects of the cluster that affect plans, as a List that the programs read with -f. It leaves out Secrets, but it has the environment variables of containers.",
	}, func(cmd *cobra.Command, out io.Writer) error {
		if err := inputs.OneOf("output", format, "yaml", "json"); err != nil {
			return err
		}
		read.cmd = cmd
		text, err := io.ReadAll(read)
		if err == nil && format == "yaml" {
			text, err = yaml.JSONToYAML(text)
		}
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	})
	cmd.Flags().StringVarP(&format, "output", "o", "yaml", "output format: yaml or json")
	inputs.Complete(cmd, "output", "yaml", "json")
	return cmd
}

// reader is the cluster as a file of manifests. It is exported when it is first read.
type reader struct {
	connect func() (live.Cluster, error)
	cmd     *cobra.Command
	text    *bytes.Reader
	err     error
}

// Stored says that an API server has stored what is read, unless -f names other files.
func (r *reader) Stored() bool {
	files, err := r.cmd.Flags().GetStringArray("filename")
	return err == nil && len(files) == 1 && files[0] == "-"
}

func (r *reader) Read(p []byte) (int, error) {
	if r.text == nil {
		var text bytes.Buffer
		if r.err = r.export(&text); r.err != nil {
			return 0, r.err
		}
		r.text = bytes.NewReader(text.Bytes())
	}
	return r.text.Read(p)
}

func (r *reader) export(w io.Writer) error {
	cluster, err := r.connect()
	if err != nil {
		return fmt.Errorf("read the cluster: %w", err)
	}
	cluster.Manifests = &manifests.Options{Classes: pipeline.NodeClassDecoders()}
	if f := r.cmd.Flag("scheduler-config"); f != nil && f.Changed { // then Services count, too
		cluster.Manifests.Spread = []corev1.TopologySpreadConstraint{{}}
	}
	done := terminal.Progress(r.cmd.ErrOrStderr(), "reading the cluster")
	notes, err := cluster.Export(r.cmd.Context(), w)
	done()
	if err != nil {
		return fmt.Errorf("read the cluster: %w", err)
	}
	inputs.Note(r.cmd.ErrOrStderr(), notes...)
	return nil
}
