package relax

// Every constant of the engine that trades work for quality stands here, with its reason and what was seen. Figures are of
// examples/pricebench at twenty to a thousand pods and of OR-Library's 80 instances, unless they say otherwise.
const (
	// mostThings is how many items an exact search takes on: it recurses once a item.
	maxItems = 4096
	// cells is how finely a surrogate tells amounts apart: rounding costs at most one of them a bin, 0.05% of the demand.
	cells = 2000
	// mostSurrogates bounds what is looked at for each set. It has not been varied.
	mostSurrogates = 8
	// deepest is the most steps that finding what a bin type holds may take in a search, and patience after how many bin types in a
	// row that took more no other is tried. With 5,000 steps the preparation used up the budget of twenty items.
	deepest, patience = 1_000, 4
	// greedyPart, generatePart and provePart are what parts of the budget the greedy filling, column generation and its proof get at
	// most; improveTenths of the rest are for the large-neighbourhood search, before the exact search takes what remains.
	greedyPart, generatePart, provePart, improveTenths = 8, 3, 4, 9
	// fillings is how many fillings the greedy filling compares for a bin where its part of the budget suffices for so many, and
	// fillingSteps what one takes.
	fillings, fillingSteps = 5, 3_000
	// countedPart is what part of the budget filling counted bins gets, of which countedSteps go for each class and dimension twice,
	// and leastClasses how many classes are looked at for each bin in any case. Without, 5,000 distinct pods and 200 nodes took
	// effort fast over a second.
	countedPart, countedSteps, leastClasses = 4, 120, 100
	// exactFirst is the part of the budget that an exact search gets before column generation, and exactThings how many items
	// halve that. Without a first search, gaps at twenty to a hundred pods were 3.3% in the mean instead of 0.5%; with a quarter
	// of the budget 77 instead of 79 of OR-Library's instances were solved.
	exactFirst, exactItems = 16, 200
	// levels is how often a search begins again with four times the nodes for each set, of which the first has firstNodes;
	// thresholds in how many parts it goes through the prices between what is proved and what is known. A set that is refuted is
	// not looked at again, so that a small first level costs little. They have not been varied.
	levels, firstNodes, thresholds = 9, 256, 8
	// lnsRounds is how often the two halves of the large-neighbourhood search meet, lnsLeast the steps that are worth a meeting,
	// lnsHalf how many bins a half needs to exchange items with others, and lnsGain by which part a round must have lowered
	// the cost for another to be worth its steps. Accepting dearer packings for a while (simulated annealing) changed the mean
	// gap by less than other draws do, so it is not done.
	lnsRounds, lnsLeast, lnsHalf, lnsGain = 4, 500_000, 100, 1e-5
	// dives is how many ways of rounding are tried at most, each another path.
	dives = 4
	// sharp is by what part a proof may be below what it could become, and patient in how many rounds it is sought.
	sharp, patient = 0.0005, 8
	// pivotsPerRow is how many pivots a row of the master programme is reckoned to take for each item that a bin holds, mostPerBin
	// of them at most where the gap is wider than wideGap: what holds a hundred items takes no more pivots, but where the gap is
	// small the search over bins closes it sooner. With half as many, plans of 20 items at effort fast were 0.7% dearer, for little
	// was left for the search over bins; with twice as many, gaps of 50 and 100 items were a tenth wider. Without mostPerBin bounds of 100 labelled
	// pods were 9% lower.
	pivotsPerRow, mostPerBin, wideGap = 4, 16, 0.05
	// pricingSteps is what looking for patterns is reckoned to take for each bin type, class and dimension, four times over; it has not been
	// varied. Without, plans of 20 items at effort fast were 0.5% dearer.
	pricingSteps = 64
	// sumsInStep is how many steps of the simplex, plain sums, take as long as one of the budget.
	sumsInStep = 4
	// priceRows times the cube root of the number of items is how many rows the programme may have that gives each sort of bin types
	// prices of its own: its cost grows with their cube, and the budget with items. With 9, bounds of 50 and 100 labelled pods
	// were 1.8% lower; with 30, 100 items that each asked for other bin types took 0.24 s, with 18 0.05.
	priceRows = 18
)
