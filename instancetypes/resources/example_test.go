package resources_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

func ExampleRequest() {
	fmt.Println(resources.Request(corev1.ResourceCPU, resource.MustParse("0.25")))
	fmt.Println(resources.Request(corev1.ResourceMemory, resource.MustParse("1Ki")))
	// Output:
	// 250
	// 1024
}

func ExampleCapacity() {
	odd := resource.MustParse("1500u") // one and a half milli-cores
	fmt.Println(resources.Capacity(corev1.ResourceCPU, odd), resources.Request(corev1.ResourceCPU, odd))
	// Output: 1 2
}

func ExampleQuantity() {
	q := resources.Quantity(corev1.ResourceMemory, 3<<30)
	fmt.Println(q.String())
	// Output: 3Gi
}

func ExampleHumane() {
	fmt.Println(resources.Humane(corev1.ResourceCPU, 1930), resources.Humane(corev1.ResourceMemory, 6903<<20), resources.Humane(corev1.ResourcePods, 29))
	// Output: 1930m 6903Mi 29
}

func ExampleSub() {
	capacity := corev1.ResourceList{"cpu": resource.MustParse("2"), "pods": resource.MustParse("29")}
	reserved := corev1.ResourceList{"cpu": resource.MustParse("70m")}
	rest := resources.Sub(capacity, reserved)
	for _, name := range resources.Names(rest) {
		q := rest[name]
		fmt.Println(name, q.String())
	}
	// Output:
	// cpu 1930m
	// pods 29
}

func ExampleParse() {
	_, err := resources.Parse("1e-99999999")
	fmt.Println(err)
	// Output: resources: "1e-99999999": want an exponent from -100 to 100
}

func ExampleAdd() {
	sum := resources.Add(corev1.ResourceList{"cpu": resource.MustParse("1")}, corev1.ResourceList{"cpu": resource.MustParse("500m")})
	fmt.Println(sum.Cpu())
	// Output: 1500m
}

func ExampleMax() {
	most := resources.Max(corev1.ResourceList{"cpu": resource.MustParse("1")}, corev1.ResourceList{"cpu": resource.MustParse("500m")})
	fmt.Println(most.Cpu())
	// Output: 1
}

func ExampleNames() {
	fmt.Println(resources.Names(corev1.ResourceList{"pods": resource.MustParse("1"), "cpu": resource.MustParse("1")}))
	// Output: [cpu pods]
}

func ExampleCountsVolumes() {
	fmt.Println(resources.CountsVolumes("attachable-volumes-csi-ebs.csi.aws.com"), resources.CountsVolumes("example.com/disk"))
	// Output: true false
}

func ExampleMeant() {
	fmt.Println(resources.Meant("cpus", "cpu", "memory"), resources.Meant("gpu", "cpu"))
	// Output: cpu nvidia.com/gpu
}

func ExampleIsExtended() {
	fmt.Println(resources.IsExtended("nvidia.com/gpu"), resources.IsExtended("cpu"))
	// Output: true false
}

func ExampleWrongRequest() {
	two, one := corev1.ResourceList{"cpu": resource.MustParse("2")}, corev1.ResourceList{"cpu": resource.MustParse("1")}
	fmt.Println(resources.WrongRequest("cpu", &corev1.ResourceRequirements{Requests: two, Limits: one}))
	// Output: the request 2 exceeds the limit 1
}
