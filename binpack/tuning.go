package binpack

// Constants that trade work for quality, each with its reason and what was tried. Those of the engine are in internal/relax.
const (
	// leastSteps, mostSteps and halfItems define the budget for n copies: leastSteps + mostSteps * x * x * x steps with x = n /
	// (n + halfItems). A step takes two to three nanoseconds, so a hundred copies take 15 to 25 ms and ten thousand about half
	// a second. 77 of OR-Library's 80 instances (120 to 1,000 copies) are solved. With 3 and 250 million and 270, 2,080 problems of
	// 20 to 5,000 copies took a seventh longer and were 0.04% cheaper; with a half of 400, bounds of 100 and 200 copies were 0.2% lower.
	leastSteps, mostSteps, halfItems = 3_500_000, 200_000_000, 300
	// fastPart is the fraction of the budget that effort fast takes, fastLeast its minimum (under half a millisecond), and
	// bestTimes the multiple that effort best takes. Consolidation uses fast: six clusters of a thousand nodes were 0.6 to 1.0%
	// dearer than packed from scratch with a hundredth of the budget, and 0.0 to 0.1% with a twentieth.
	fastPart, fastLeast, bestTimes = 20, 150_000, 10
	// enoughGap is the gap at which the search ends; prices are not known more exactly.
	enoughGap = 1e-5
	// admitSteps is how many steps one admit takes.
	admitSteps = 4
	// Packing again under all rules takes 1/repackPart of the budget on top of it, and half of what is left: plans of 2,080 problems of 20 to
	// 5,000 items were 0.07% dearer with a quarter. It ends after idleRounds rounds for each bin
	// without a gain, and idleLeast more; with 100 rounds, plans of 478 of them were 0.02% cheaper.
	repackPart, idleRounds, idleLeast = 2, 40, 800
	// Looking for one bin that holds all that is left takes one step for oneBinPart types. Plans of 1,040 problems were 0.07% dearer
	// without it, those of 100 items with labels 0.4%.
	oneBinPart = 4
	// putSteps is how many steps one attempt to put an item into a bin takes there, openSteps those of a new bin, and showSteps those
	// of a type that is looked at for MinValues. With the 4 of
	// admitSteps, a fifth of the budget took as long as all the rest; it includes what is copied.
	putSteps, openSteps, showSteps = 16, 60, 8
	// A new bin is the best of openTypes random ones: with 1, 2, 4, 6 and 9 of them, plans of 512 problems were 0.2, 0.1, 0.1, 0.2 and
	// 0.2% dearer, because a round takes longer the more there are. A type is tried on only if its own price makes it at least promising
	// times as good as the best one. Up to otherBins of the bins that are left take items, and up to otherItems unplaced items are
	// tried, so that a round does not depend on the size of the plan. Without otherBins, plans of 478 problems were 0.2% dearer.
	openTypes, promising, otherBins, otherItems = 3, 0.8, 16, 8
	// Every second round is more random: one of blinks items is passed over, and a new bin is the best of fewer types. With this in every
	// round, plans of 428 problems were 0.2% dearer; without, 5 of 2,000 small problems with all rules missed the optimum, and now 2.
	blinks = 8
	// knapsackNodes is how far a round searches a knapsack, repairs and repairNodes how often and how far it improves a greedy filling.
	// None of them has been varied.
	knapsackNodes, repairs, repairNodes = 150, 2, 60
	// A relaxation has at most minNodeShapes to maxNodeShapes different free capacities of existing nodes, such that comparing
	// each with each class takes at most nodeShapeWork. If there are more, similar ones are merged. With 64 for any number of
	// classes, plans of 5,000 pods and 200 nodes were 2.5% dearer and their bounds 1% lower.
	minNodeShapes, maxNodeShapes, nodeShapeWork = 64, 512, 800_000
	// maxApart is how many tags that keep items apart become resources of a relaxation; each makes all its searches longer.
	// apartShare is the least number of bins that such a tag must require, relative to the most that any requirement needs.
	maxApart, apartShare = 3, 0.3
	// verifyBase, verifyPerNode and verifyNodes bound the steps of a repeated search: a node takes fewer than a hundred, and no
	// effort makes more nodes.
	verifyBase, verifyPerNode, verifyNodes = 50_000_000, 128, 20_000_000
	// blockOfBins is how many bins a block of freeIndex has. 100,000 distinct items took 130 ms with 16, 166 ms with 64 and 510
	// ms with 256, on a busy machine.
	blockOfBins = 16
	// A step of a watch takes 20 to 100 ns. graceSteps are done even if the context has ended before, in at most 20 ms, and watchEvery pass
	// between two looks.
	graceSteps, watchEvery = 100_000, 10_000
	// stopEvery is how many items are processed between two checks of the context.
	stopEvery = 1024
	// compileEvery is the same for items with new requirements, which take up to 100 microseconds each.
	compileEvery = 256
	// frontierPoints is how many layouts a frontier tries. At the last, a bin costs a thousand times a sixteenth of its price
	// more.
	frontierPoints = 11
	// maxNarrowings is how often labels are narrowed, a microsecond each, before it is not decided whether alternatives agree.
	maxNarrowings = 20_000
	// patience is how many items in a row may fail to enter a bin before it is closed.
	patience = 64
)
