package memory

import (
	"fmt"
	"os"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/kwok"
)

// Catalogue is what a file in the shape of Karpenter's KWOK provider offers or, without one, EC2 in a region, as embedded.
func Catalogue(file, region string) ([]instancetypes.InstanceType, error) {
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("memory: %w", err)
		}
		return kwok.Read(data)
	}
	r, err := catalogue.Load(region)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return ec2.Types(r, ec2.Settings{})
}
