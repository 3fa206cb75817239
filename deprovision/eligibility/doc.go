// Package eligibility decides which nodes each method may give back and why the others must stay.
package eligibility
