// Package pricing has the layers that prices are made of: a list, spot history, discounts, commitments with a count,
// overlays and overrides, each an [instancetypes.PriceSource]. Stack them in the order in which they hold:
//
//	instancetypes.Reprice(types, list, history, discount, commitment, override)
//
// Every quote keeps the list it comes from, so that an answer can say which list, of which date, and how estimated.
package pricing
