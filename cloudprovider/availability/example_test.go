package availability_test

import (
	"fmt"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/availability"
	"github.com/joinery-sdk/joinery/requirements"
)

// Refusals of one type withhold that type. When several of a family are refused in a zone, the cause is larger than a type.
func ExampleScope() {
	l := availability.New(availability.Policy{FamilyTypes: 2}).
		Refuse(at(0), refusal("m5.large", "a")).
		Refuse(at(0), refusal("m5.xlarge", "a")).
		Exceed(at(0), cloudprovider.Quota{Name: "gpu", Blocks: requirements.MustParse("family=p5")})
	counts := map[availability.Scope]int{}
	for _, r := range l.Active(at(1)) {
		counts[r.Scope]++
	}
	for _, scope := range []availability.Scope{availability.OfOffering, availability.OfFamily, availability.OfZone, availability.OfQuota} {
		fmt.Println(scope, counts[scope])
	}
	// Output:
	// Offering 2
	// Family 1
	// Zone 0
	// Quota 1
}
