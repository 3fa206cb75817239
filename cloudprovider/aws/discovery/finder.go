package discovery

import (
	"cmp"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	instances "github.com/joinery-sdk/joinery/instancetypes/ec2"
)

// TTL says for how long answers are remembered. Zeros mean the defaults.
type TTL struct {
	// Network is for subnets and security groups. 0 = 1 minute.
	Network time.Duration
	// Images is for images, parameters and launch templates of others. 0 = 5 minutes.
	Images time.Duration
	// Cluster is for the cluster's version and endpoint. 0 = 5 minutes.
	Cluster time.Duration
	// Shifts is for zones that traffic was shifted away from. 0 = 30 seconds.
	Shifts time.Duration
	// Capacity is for capacity reservations and placement groups. 0 = 1 minute.
	Capacity time.Duration
}

// Finder asks AWS and remembers. It is safe for concurrent use; make one by [NewFinder].
type Finder struct {
	clients   *api.Clients
	addresses *Addresses

	subnets      *Cache[[]Subnet]
	groups       *Cache[[]Group]
	images       *Cache[[]Image]
	clusters     *Cache[Cluster]
	reservations *Cache[[]instances.Reservation]
	placements   *Cache[Placement]
	templates    *Cache[Template]
	shifts       *Cache[[]string]
}

// NewFinder asks through the clients.
func NewFinder(clients *api.Clients, clock api.Clock, ttl TTL) *Finder {
	network, images := cmp.Or(ttl.Network, time.Minute), cmp.Or(ttl.Images, 5*time.Minute)
	capacity := cmp.Or(ttl.Capacity, time.Minute)
	return &Finder{
		clients: clients, addresses: newAddresses(clock),
		subnets: NewCache[[]Subnet](clock, network), groups: NewCache[[]Group](clock, network), images: NewCache[[]Image](clock, images),
		clusters:     NewCache[Cluster](clock, cmp.Or(ttl.Cluster, 5*time.Minute)),
		reservations: NewCache[[]instances.Reservation](clock, capacity), placements: NewCache[Placement](clock, capacity),
		templates: NewCache[Template](clock, images), shifts: NewCache[[]string](clock, cmp.Or(ttl.Shifts, 30*time.Second)),
	}
}

// Addresses are the free addresses of the subnets that were found.
func (f *Finder) Addresses() *Addresses { return f.addresses }

// Forget makes the next call of each method ask AWS again: for callers that were told that something is gone.
func (f *Finder) Forget() {
	f.subnets.Forget()
	f.groups.Forget()
	f.images.Forget()
	f.reservations.Forget()
	f.placements.Forget()
	f.templates.Forget()
}
