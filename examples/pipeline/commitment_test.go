package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// A commitment covers two nodes of whatever matches, in any zone: it is used up once, not once a zone, and what goes
// beyond costs the list price.
func TestACommitmentIsUsedUpOnceAcrossZones(t *testing.T) {
	var offerings []string
	for _, zone := range []string{"zone-a", "zone-b", "zone-c"} {
		where := fmt.Sprintf(`"Available":true,"Requirements":[{"key":"topology.kubernetes.io/zone","operator":"In","values":[%q]},
			{"key":"karpenter.sh/capacity-type","operator":"In","values":["on-demand"]}]`, zone)
		offerings = append(offerings,
			`{"Price":0.10,"Commitment":"three-years","ReservationCapacity":2,`+where+`}`, `{"Price":0.25,`+where+`}`)
	}
	market, err := pipeline.KWOKMarket("test", []byte(`[{"name":"m.4","architecture":"amd64","operatingSystems":["linux"],
		"resources":{"cpu":"4","memory":"16Gi","pods":"50"},"offerings":[`+strings.Join(offerings, ",")+`]}]`))
	require.NoError(t, err)

	packed := pack(t, market, anyPool+`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
        - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      containers: [{name: web, image: registry.example.com/web, resources: {requests: {cpu: "3"}}}]
`)
	assert.Len(t, packed.Bindings(), 6)
	assert.Len(t, packed.Packing.Bins, 6)
	assert.Equal(t, plan.Price(2*0.10+4*0.25), packed.Packing.Cost, "two at the price of the commitment, four beyond it")
}
