// Package availability remembers what a cloud refused, for how long it is not worth asking again, and shows a catalogue
// without it.
//
// A [Ledger] is an immutable value; time is an argument. Two things are kept apart:
//
// Lack of capacity is of an offering: type, zone, capacity type, reservation. Each refusal withholds the offering for a
// while, which doubles with every refusal that follows, because a cloud that has run out rarely has more a moment later.
// When several types of one family are refused in one zone at one capacity type, the whole family there is withheld, and
// when several families are, the zone at that capacity type: the cause is then larger than one type, and trying one type
// after the other only costs time. A launch that succeeds proves that there is capacity, and ends what it disproves.
//
// A quota is of the account: it blocks every type and zone that counts towards it at once, says nothing about capacity,
// and ends when something is given back or the limit is raised.
package availability
