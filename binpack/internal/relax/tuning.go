package relax

// Constants of the engine that trade work for quality, each with its reason and what was measured.
// The measurements are on examples/pricebench at twenty to a thousand pods and on OR-Library's 80
// instances, unless stated otherwise.
const (
	// stopEvery is how many nodes of a search pass between two looks at the stop flag.
	stopEvery = 1024
	// mostColumns is how many bins a packing has at most. Counts may be in the billions, and memory
	// is limited. With more bins, the plan of first fit is used.
	mostColumns = 1 << 22
	// maxItems is how many items an exact search accepts; choosing a set of bins recurses once per
	// item.
	maxItems = 4096
	// deepestFilling is how many pairs of a bin and a class the search of one set visits at most.
	// It recurses once for each pair, so this takes about 30 MB of stack. It keeps as many numbers
	// for each dimension.
	deepestFilling = 1 << 17
	// cells is the resolution of a surrogate's cost table. Rounding costs at most one cell per bin,
	// 0.05% of the demand.
	cells = 2000
	// mostSurrogates limits the work per set of bins. It has not been varied.
	mostSurrogates = 8
	// deepest is the step limit of the knapsack search for a surrogate's capacity of one bin type.
	// After patience bin types in a row exceed it, the rest are not searched. With 5,000 steps the
	// preparation used up the budget of twenty items.
	deepest, patience = 1_000, 4
	// greedyPart, generatePart, convergePart and provePart are the divisors of the budget for the
	// greedy filling, for column generation, for its proof, and for everything that only makes the
	// bound better.
	greedyPart, generatePart, convergePart, provePart = 8, 3, 4, 8
	// fillings is how many fillings Greedy compares for a bin. With 3, plans of 2,080 problems at
	// effort fast were 0.3% dearer. With one or two for many items, those of 100,000 distinct items
	// were 2.2 and 0.8% dearer. Greedy prices the remaining items again when their dual value is
	// stale times what it was.
	fillings, stale = 5, 0.9
	// countedPart is the divisor of the budget for filling counted bins. countedSteps is the cost
	// of two passes per class and dimension. leastClasses is how many classes each bin considers at
	// least. Without these limits, 5,000 distinct pods and 200 nodes took effort fast over a
	// second.
	countedPart, countedSteps, leastClasses = 4, 120, 100
	// rankedClasses is how many classes stand for all when bin types are ranked. It has not been
	// varied.
	rankedClasses = 200
	// sharpened is the relative gain at which sharpening a knapsack bound ends.
	sharpened = 1e-4
	// exactFirst is the divisor of the budget for the exact search before column generation;
	// exactItems is the number of items that halves it. Without this first search, gaps at twenty
	// to a hundred pods were 3.3% in the mean instead of 0.5%. With a quarter of the budget, 77
	// instead of 79 of OR-Library's instances were solved.
	exactFirst, exactItems = 16, 200
	// levels is how often a search restarts with four times the nodes for each set, from firstNodes
	// on. thresholds is the number of price steps between bound and known price. Refuted sets are
	// not tried again, so a small first level costs little. They have not been varied.
	levels, firstNodes, thresholds = 9, 256, 8
	// dives is the maximum number of dives; each rounds differently.
	dives = 4
	// A proof ends within sharp of the best possible one, or after patient rounds.
	sharp, patient = 0.0005, 8
	// Column generation is estimated to take pivotsPerRow pivots for each row and each item in a
	// bin; at most mostPerBin items count. With half of pivotsPerRow, plans of 20 items at effort
	// fast were 0.7% dearer. With twice as many, gaps of 50 and 100 items were a tenth wider.
	// Without mostPerBin, bounds of 100 labelled pods were 9% lower.
	pivotsPerRow, mostPerBin = 4, 16
	// pricingSteps is the estimated cost of four pricing rounds per bin type, class and dimension;
	// it has not been varied. Without it, plans of 20 items at effort fast were 0.5% dearer.
	pricingSteps = 64
	// sumsInStep is how many simplex steps, which are plain sums, take as long as one step of the
	// budget.
	sumsInStep = 4
	// priceRows times the cube root of the number of items is the maximum number of rows of the
	// programme that prices each type group. Its cost grows with their cube, and the budget with
	// the items. With 9, bounds of 50 and 100 labelled pods were 1.8% lower; 100 items for as many
	// bin types took 0.24 s with 30 and 0.05 s with 18.
	priceRows = 18
	// refinePart is the divisor of the budget for pricing again with more demand groups. Without a
	// limit, it took half the budget of 100 labelled pods, and too little remained for other
	// proofs. Refined duals made bounds 1.2% higher for 1,000 items with categories.
	refinePart = 16
	// mostCaptives is how many sets of bin types a proof looks at for whole bins. It has not been
	// varied: labels make fewer.
	mostCaptives = 64
	// wholeTries is how many duals are tried for the captives of a set. With 1, 2 and 8, bounds of
	// 440 problems with labels or weights were 0.13 and 0.09% lower and 0.02% higher. wholeSteps is
	// the estimated cost per bin type, class and dimension. All of this takes 1/wholePart of what
	// proofs may take, 1/32 of the budget. With an eighth of it, plans of 2,240 problems were 0.02%
	// dearer and bounds the same.
	wholeTries, wholeSteps, wholePart = 4, 30, 4
)
