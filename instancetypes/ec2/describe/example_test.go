package describe_test

import (
	"fmt"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

// Some types have a part of a GPU only: an eighth of an L4, which the operating system sees as one device.
func ExampleGPU() {
	types, err := describe.Read([]byte(`{"InstanceTypes": [` + one + `]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, gpu := range types[0].GPUs {
		fmt.Printf("%s %s: %d/1000 of a device, %d MiB, seen as %d\n", gpu.Manufacturer, gpu.Name, gpu.Share, gpu.MemoryMiB, gpu.Logical)
	}
	// Output: NVIDIA L4: 125/1000 of a device, 2861 MiB, seen as 1
}

// Accelerators that are no GPUs come in two kinds: devices for inference, and Neuron devices, which have cores of their own.
func ExampleNeuronDevice() {
	d := describe.Description{
		Name:         "inf2.24xlarge",
		Accelerators: []describe.Accelerator{{Name: "Inferentia2", Manufacturer: "AWS", Count: 6, MemoryMiB: 32768}},
		Neuron:       []describe.NeuronDevice{{Name: "Inferentia2", Count: 6, Cores: 2, MemoryMiB: 32768}},
	}
	for _, n := range d.Neuron {
		fmt.Println(d.Name, "has", n.Count*n.Cores, "cores of", n.Name)
	}
	// Output: inf2.24xlarge has 12 cores of Inferentia2
}

func ExampleReadUsable() {
	types, odd, err := describe.ReadUsable([]byte(`{"InstanceTypes": [` + one + `, {"InstanceType": "next-large"}]}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(len(types), types[0].Name, odd != nil)
	// Output: 1 g6f.large true
}
