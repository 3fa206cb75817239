// Package simulate combines deprovisioning with scheduling and packing. Package deprovision asks
// the questions, scheduling/whatif knows where running pods can go, and binpack knows what to buy
// for pods that do not fit.
package simulate
