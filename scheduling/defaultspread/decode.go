package defaultspread

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joinery-sdk/joinery/internal/strictjson"
)

// System returns the constraints of a kube-scheduler without configuration (defaultingType:
// System): soft spreads over hostnames and zones. They never keep a pod from a node. A plan pays as
// much for them as for other preferences.
func System() []corev1.TopologySpreadConstraint {
	return []corev1.TopologySpreadConstraint{
		{MaxSkew: 3, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway},
		{MaxSkew: 5, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway},
	}
}

// The wire forms: arguments of kube-scheduler's plugin, and the file of Karpenter's
// --scheduler-config.
type (
	wireArgs struct {
		APIVersion         string                            `json:"apiVersion"`
		Kind               string                            `json:"kind"`
		DefaultConstraints []corev1.TopologySpreadConstraint `json:"defaultConstraints"`
		DefaultingType     string                            `json:"defaultingType"`
	}
	wireKarpenter struct {
		PodTopologySpread wireArgs `json:"podTopologySpread"`
	}
)

const (
	plugin           = "PodTopologySpread"
	schedulingConfig = "KubeSchedulerConfiguration"
)

// Decode reads the default constraints from JSON; for YAML, convert it with yaml.YAMLToJSON of
// sigs.k8s.io/yaml. It reads the file of Karpenter's --scheduler-config, and a
// KubeSchedulerConfiguration. In the latter it reads only the arguments of PodTopologySpread in the
// profile default-scheduler. A profile that does not mention PodTopologySpread gives no
// constraints. kube-scheduler then uses those of [System], but plans have them only for a profile
// with defaultingType: System. The error joins one error for each fault, with its path.
func Decode(data []byte) ([]corev1.TopologySpreadConstraint, error) {
	root, err := strictjson.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("defaultspread: %w", err)
	}
	var d strictjson.Decoder
	var args wireArgs
	at := "podTopologySpread"
	var faults []error
	fault := func(path, format string, a ...any) {
		faults = append(faults, fmt.Errorf("defaultspread: %s: %s", path, fmt.Sprintf(format, a...)))
	}
	report := func(under string, problems []strictjson.Problem) {
		for _, p := range problems {
			fault(strings.Trim(under+"."+p.Path, "."), "%s", p.Detail)
		}
	}
	switch kind := root.Get("kind"); {
	case kind != nil && kind.Text == schedulingConfig:
		var n *strictjson.Node
		if n, at = pluginArgs(&root); n == nil {
			return nil, nil
		}
		report(at, d.Decode(n, &args))
	case kind != nil:
		fault("kind", "%q: want %s, or no kind and podTopologySpread, as in Karpenter's --scheduler-config", kind.Text, schedulingConfig)
	default:
		var own wireKarpenter
		report("", d.Decode(&root, &own))
		args = own.PodTopologySpread
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	switch args.DefaultingType {
	case "", "List":
	case "System":
		if len(args.DefaultConstraints) > 0 {
			fault(at+".defaultConstraints", "defaultingType System allows none: want List")
		}
		args.DefaultConstraints = System()
	default:
		fault(at+".defaultingType", "%q: want List or System", args.DefaultingType)
	}
	type pair struct {
		key  string
		when corev1.UnsatisfiableConstraintAction
	}
	seen := map[pair]bool{}
	for i := range args.DefaultConstraints {
		c, path := &args.DefaultConstraints[i], fmt.Sprintf("%s.defaultConstraints[%d]", at, i)
		if text := wrong(c); text != "" {
			fault(path, "%s", text)
		}
		if p := (pair{c.TopologyKey, c.WhenUnsatisfiable}); seen[p] {
			fault(path, "another one already has topologyKey %q and whenUnsatisfiable %q", p.key, p.when)
		} else {
			seen[p] = true
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return args.DefaultConstraints, nil
}

// pluginArgs returns the arguments of the plugin in the profile of pods that name no scheduler, and
// their path; nil for none.
func pluginArgs(root *strictjson.Node) (*strictjson.Node, string) {
	profiles := root.Get("profiles")
	for i := 0; profiles != nil && i < len(profiles.Items); i++ {
		profile := &profiles.Items[i]
		if name := profile.Get("schedulerName"); name != nil && name.Text != "" && name.Text != corev1.DefaultSchedulerName {
			continue
		}
		configs := profile.Get("pluginConfig")
		for k := 0; configs != nil && k < len(configs.Items); k++ {
			if name := configs.Items[k].Get("name"); name != nil && name.Text == plugin {
				return configs.Items[k].Get("args"), fmt.Sprintf("profiles[%d].pluginConfig[%d].args", i, k)
			}
		}
	}
	return nil, ""
}

// wrong says why kube-scheduler would refuse a default constraint; empty if it would not.
func wrong(c *corev1.TopologySpreadConstraint) string {
	switch {
	case c.MaxSkew < 1:
		return fmt.Sprintf("maxSkew is %d, must be 1 or more", c.MaxSkew)
	case c.TopologyKey == "":
		return "topologyKey is empty"
	case len(validation.IsQualifiedName(c.TopologyKey)) > 0:
		return fmt.Sprintf("topologyKey %q: %s", c.TopologyKey, strings.Join(validation.IsQualifiedName(c.TopologyKey), "; "))
	case c.WhenUnsatisfiable != corev1.DoNotSchedule && c.WhenUnsatisfiable != corev1.ScheduleAnyway:
		return fmt.Sprintf("whenUnsatisfiable is %q, want DoNotSchedule or ScheduleAnyway", c.WhenUnsatisfiable)
	case c.LabelSelector != nil:
		return "labelSelector must be empty: it comes from the pod's Services and controller"
	case len(c.MatchLabelKeys) > 0:
		return "matchLabelKeys must be empty: the selector comes from the pod's Services and controller"
	}
	return ""
}
