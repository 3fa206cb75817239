package binpack

// Every constant that trades work for quality stands here, with its reason and what was tried; those of the engine are in
// internal/relax.
const (
	// leastSteps, mostSteps and halfItems are the curve of the budget: leastSteps + mostSteps * x * x * x steps for n items,
	// x = n / (n + halfItems), a step being two to three nanoseconds. A hundred items take some 10 to 15 ms so, ten thousand
	// about half a second. It was raised until 77 of OR-Library's 80
	// instances, of 120 to 1,000 items, were solved.
	leastSteps, mostSteps, halfItems = 3_000_000, 250_000_000, 270
	// fastPart and bestTimes are what part of that the effort fast, and how many times as much the effort best takes; fastLeast is
	// what fast takes at least, under half a millisecond. Consolidation asks with this effort: six clusters of a thousand nodes came
	// out 0.6 to 1.0% dearer than packed from scratch with a hundredth, and 0.0 to 0.1% with a twentieth.
	fastPart, fastLeast, bestTimes = 20, 150_000, 10
	// enoughGap is a gap at which nothing more is tried: 1% of a thousandth is below what prices are known to.
	enoughGap = 1e-5
	// admitSteps is what it takes to see whether a bin takes an item.
	admitSteps = 4
	// tierRounds is how often what the rules did not allow is planned again; first fit places the rest.
	tierRounds = 4
	// leastRooms to mostRooms is how many different rooms of existing nodes a relaxation takes in, so many that each is compared
	// with each class roomWork times at most. Of more, like ones are taken together, in up to roomDigits steps of coarseness: with
	// 64 for any number of classes, plans of 5,000 pods and 200 nodes were 2.5% dearer and their bounds 1% lower.
	minNodeShapes, maxNodeShapes, nodeShapeWork, nodeShapeDigits = 64, 512, 800_000, 5
	// maxApart is how many tags that keep items apart a relaxation takes for resources, for each makes all its searches
	// longer; apartShare is what a tag must call for, as a part of the bins that the most demanding one calls for.
	maxApart, apartShare = 3, 0.3
	// mostPools is how many capacity pools a plan counts one by one, each a row of the programme. Of more there are others nearly as
	// good, and each bin goes to one that may take it: with 1,800 pools, plans that counted them were 9% dearer; of 12 to 36, plans
	// that did not were 5 to 10% dearer.
	mostPools = 64
	// verifyBase, verifyPerNode and verifyNodes bound the steps of a search that is done again: a node takes fewer than a
	// hundred, and no effort makes more than so many.
	verifyBase, verifyPerNode, verifyNodes = 50_000_000, 128, 20_000_000
	// blockOfBins is how many bins a block of first fit's index has: 100,000 distinct items took 130 ms with 16, 166 with 64
	// and 510 with 256, on a busy machine.
	blockOfBins = 16
	// stopEvery is how many items are gone through between two looks at whether the caller has given up.
	stopEvery = 1024
	// blockOfOffers is how many offers a block has where dominated ones are looked for; it has not been varied.
	blockOfOffers = 32
	// frontierPoints is how many layouts a frontier tries: with the last, a bin costs a thousand times its sixteenth more.
	frontierPoints = 11
	// maxScarce bounds the work of packing again where budgets leave something over: bins times types times items.
	maxScarce = 20_000_000
	// patience is how many items that do not go into a bin are tried before it is given up.
	patience = 64
)
