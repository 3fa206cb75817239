// Package availability remembers what a cloud refused and how long it is not worth asking again. It
// shows a catalogue without what was refused.
//
// A [Ledger] is an immutable value; time is an argument. The package keeps two things apart.
//
// Lack of capacity belongs to an offering: type, zone, capacity type, reservation. Each refusal
// withholds the offering for a while. The time doubles with every further refusal, because a cloud
// that has run out rarely has more a moment later. When several types of one family are refused in
// one zone at one capacity type, the whole family is withheld there. When several families are
// refused, the zone at that capacity type is withheld. The cause is then larger than one type, and
// trying every type would only cost time. A successful launch proves that there is capacity, and
// removes the records that it disproves.
//
// A quota belongs to the account. It blocks every type and zone that counts towards it at once, and
// it says nothing about capacity. It ends when something is given back or the limit is raised.
package availability
