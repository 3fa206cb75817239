// Package pricing has the layers of a price: a list, spot history, discounts, commitments with a
// count, overlays and overrides. Each is an [instancetypes.PriceSource]. Stack them from the lowest
// to the highest:
//
//	instancetypes.Reprice(types, list, history, discount, commitment, override)
//
// Every quote keeps the list that it comes from. So an answer can name the list, its date, and
// whether it is an estimate.
package pricing
