package line

import (
	"fmt"
	"strconv"
	"strings"
)

// Offer is one line about an instance type in a region.
type Offer struct {
	Type  string
	Zones string // last letters of the zones' names, ascending: "abd"
	// Price is the on-demand price in US dollars per hour, as the list writes it. Empty means that
	// the list does not have the type.
	Price string
	// Savings is the saving of spot over on-demand in percent; -1 means unknown.
	Savings int
	// Guessed says that the savings are assumed, not the type's own.
	Guessed bool
}

// EncodeOffer writes an offer without a line end: "m5.large abcdf 0.096 67". "-" stands for an
// unknown value, and "~" precedes guessed savings.
func EncodeOffer(o Offer) string {
	price, spot := o.Price, "-"
	if price == "" {
		price = "-"
	}
	if o.Savings >= 0 {
		spot = strconv.Itoa(o.Savings)
		if o.Guessed {
			spot = "~" + spot
		}
	}
	return strings.Join([]string{o.Type, o.Zones, price, spot}, " ")
}

// DecodeOffer reads what EncodeOffer writes.
func DecodeOffer(text string) (Offer, error) {
	name, rest, _ := strings.Cut(text, " ")
	zones, rest, _ := strings.Cut(rest, " ")
	price, spot, ok := strings.Cut(rest, " ")
	if !ok {
		return Offer{}, fmt.Errorf("%q: want type, zones, price and spot savings", text)
	}
	o := Offer{Type: name, Zones: zones, Savings: -1}
	if price != "-" {
		o.Price = price
	}
	if spot != "-" {
		spot, o.Guessed = strings.CutPrefix(spot, "~")
		var err error
		if o.Savings, err = strconv.Atoi(spot); err != nil || o.Savings < 0 || o.Savings > 100 {
			return Offer{}, fmt.Errorf("%q: %q is not a percentage", text, spot)
		}
	}
	return o, nil
}
