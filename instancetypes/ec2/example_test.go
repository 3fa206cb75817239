package ec2_test

import (
	"fmt"

	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

// one is the memory in MiB of one type under the given settings.
func one(name string, s ec2.Settings) int64 {
	region, err := catalogue.Load("us-east-1")
	if err != nil {
		return -1
	}
	for _, o := range region.Offers {
		if o.Name == name {
			region.Offers = []catalogue.Offer{o}
			break
		}
	}
	types, err := ec2.Types(region, s)
	if err != nil {
		return -1
	}
	return types[0].Capacity.Memory().Value() >> 20
}

func ExampleFlatVMMemory() {
	fmt.Println(one("m5.large", ec2.Settings{}), one("m5.large", ec2.Settings{VMMemory: ec2.FlatVMMemory(0.05)}))
	// Output: 7577 7782
}

func ExampleLearnedVMMemory() {
	seen := ec2.LearnedVMMemory(map[string]int64{"m5.large": 7750}, nil)
	fmt.Println(one("m5.large", ec2.Settings{VMMemory: seen}), one("m5.xlarge", ec2.Settings{VMMemory: seen}))
	// Output: 7750 15155
}

func ExampleWithDescriptions() {
	region, err := catalogue.Load("us-east-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	live, err := describe.Read([]byte(`{"InstanceTypes": [{"InstanceType": "m5.large", "VCpuInfo": {"DefaultVCpus": 2}, "MemoryInfo": {"SizeInMiB": 8192},
	  "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]}, "SupportedVirtualizationTypes": ["hvm"], "SupportedUsageClasses": ["on-demand"]}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	mine := ec2.WithDescriptions(region, live)
	fmt.Println(len(mine.Offers), mine.Offers[0].Name, mine.Offers[0].OnDemand, len(mine.Offers[0].Zones))
	// Output: 1 m5.large 0.096 5
}

func ExampleSettings_WithGlobal() {
	s, err := ec2.Settings{}.WithGlobal(map[string]string{"aws.enablePodENI": "false"})
	fmt.Println(s.Notes(), err)
	_, err = s.WithGlobal(map[string]string{"aws.vmMemoryOverheadPercent": "7.5"})
	fmt.Println(err)
	// Output:
	// [no vpc.amazonaws.com/pod-eni: aws.enablePodENI is false] <nil>
	// ec2: global settings: aws.vmMemoryOverheadPercent: "7.5": want a share such as 0.075
}

func ExampleSettings_Validate() {
	fmt.Println(ec2.Settings{ReservedENIs: -1}.Validate())
	// Output: ec2: settings: reservedENIs, efaOnly: want 0 or more
}

func ExampleNaming() {
	for key := range ec2.Naming().All() {
		fmt.Println(key)
	}
	// Output:
	// karpenter.k8s.aws/instance-family
	// node.kubernetes.io/instance-type
}
