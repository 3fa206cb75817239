// Package eligibility decides which nodes each method may give back, since when, and why the others must stay.
package eligibility
