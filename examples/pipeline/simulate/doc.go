// Package simulate puts deprovisioning together with scheduling and packing: scheduling/whatif knows where running pods can
// go, binpack knows what to buy for pods that do not fit, and package deprovision asks.
package simulate
