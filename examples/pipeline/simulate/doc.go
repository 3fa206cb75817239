// Package simulate puts deprovisioning together with scheduling and packing: scheduling/whatif knows where running pods can
// go, binpack knows what to buy for those that find no room, and package deprovision asks.
package simulate
