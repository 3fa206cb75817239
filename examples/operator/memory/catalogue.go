package memory

import (
	"fmt"
	"os"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/kwok"
)

// EC2 is the embedded catalogue of a region, without what can be had no more.
func EC2(region string) ([]instancetypes.InstanceType, error) {
	r, err := catalogue.Load(region)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return ec2.Types(r, ec2.Settings{})
}

// File is a catalogue in the shape of Karpenter's KWOK provider.
func File(path string) ([]instancetypes.InstanceType, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return kwok.Read(data)
}
