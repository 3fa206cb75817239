// Package aws buys nodes from EC2. It implements the interfaces of package cloudprovider on the AWS SDK for Go v2, and passes the
// conformance kit of package cloudtest against two AWS on loopback: package awstest, and moto, which others wrote.
//
// # Asking twice is safe
//
// One token leads to one machine at most, whatever gets lost in between: call Create with the same claim until the answer is a launch or an error of the
// closed list. Calls that are made at the same time for claims of one shape are one fleet. What a fleet was asked for under which tokens stands in the
// tags of its machines (package record), and which machine is whose is written there before anybody is told (the seal of a batch). So:
//
//   - The answer was lost: within [Options].Lag the same request is sent again, with the same client token, which EC2 answers as before. Later the tags are
//     read instead, for EC2 forgets client tokens and would launch once more.
//   - The caller was restarted: a new provider waits for the lag, until everything that an earlier one launched must show, and reads it all once, page
//     by page, before it buys. Until then Create fails with ErrNotReady and says for how long. [Options].NoHistory leaves that out.
//   - The machine is gone: Create fails with ErrNotFound and says what it died of, for a day. EC2 shows a machine for about an hour after its end; a provider
//     that was started later than that does not know its token, so callers must not use a token again after they have heard that its machine is gone.
//   - EC2 launched more than was asked for: what belongs to nobody is ended, if need be by the next List.
//
// Delete can be repeated until it fails with ErrNotFound. [Provider.Withdraw] takes back all that came of some tokens, for callers that were interrupted.
// Only one provider at a time may launch for a cluster.
//
// # Retries and limits
//
// Calls are held back by token buckets of the sizes that AWS publishes (package api), so that EC2 need not throttle them; providers of one account and
// region should share their buckets. A call that is throttled all the same is repeated, as is one whose answer was lost, once; all that for two seconds at
// most. Then Create fails with ErrThrottled, or with an error outside of the closed list where the outcome is unknown: ask again. A fleet that EC2 had nothing
// for is not repeated: the refusals are in the error, and planning around them is the caller's (package availability, pipeline.Buyer in the examples).
//
// Readers of EC2 lag behind its writers. [Options].Lag is the bound that the provider trusts, a minute by default.
//
// # Failures
//
// Errors name the call as an IAM action, EC2's code and words, and a cure as far as one is known. No error and no note contains a credential or user
// data, also where AWS repeats what it was sent. What the credentials must be allowed to do is in IAM.md beside this file; [Provider.Permitted] asks beforehand.
//
// # Features
//
// What the provider of Karpenter for AWS does, and the test that shows it here. "other" means that another package of this
// module does it, and "no" that nothing does.
//
//	feature                                                | there | test, or where
//	subnets by tag, id, name, wildcard, list               | yes   | TestSubnets
//	subnet with most free addresses, launches in flight    | yes   | TestAddresses
//	security groups by tag, id, name                       | yes   | TestGroups
//	warning: two groups with the cluster's tag             | yes   | TestGroupsThatAreUnwiseTogether
//	images by alias, SSM, of each family and variant       | yes   | TestImagesOfFamilies TestAlias TestParameterPaths
//	images by id, name, owner, tag; newest per requirement | yes   | TestImagesBySelector TestImageTagsOfTheOlderVersion
//	version, endpoint and CIDR of the cluster from EKS     | yes   | TestCluster
//	user data: AL2, Ubuntu in MIME, merged                 | yes   | TestShellIsReadBack TestGolden TestGoldenRequests
//	user data: AL2023 NodeConfig, merged                   | yes   | TestNodeConfigIsReadBack TestGoldenRequests
//	user data: Bottlerocket TOML, merged, unknown kept     | yes   | TestSettingsAreReadBack TestGoldenRequests
//	user data: Windows 2019, 2022, 2025                    | yes   | TestWindows TestGoldenRequests
//	user data: Custom, verbatim                            | yes   | TestCustomIsVerbatim
//	labels, taints, kubelet settings in user data          | yes   | TestGolden TestRegistrable
//	user data that is too large is refused beforehand      | yes   | TestSize TestUserDataTooLarge
//	disks: gp3, iops, throughput, KMS, snapshot, defaults  | yes   | TestGoldenRequests TestDefaultDisks TestSizesAreRoundedUp
//	metadata options, monitoring, nested virtualization    | yes   | TestGoldenRequests
//	IPv6, public address, prefixes, connection tracking    | yes   | TestGoldenRequests
//	EFA interfaces, declared interfaces                    | yes   | TestGoldenRequests
//	pod ENI, ENI density, reserved interfaces              | other | instancetypes/ec2: TestDevices TestPodsAndReservedMemory
//	RAID0 of local disks                                   | yes   | TestGolden
//	tenancy                                                | yes   | TestGoldenRequests
//	Nitro enclaves for pods that request one               | yes   | TestGoldenRequests TestEnclaves
//	capacity reservations and blocks                       | yes   | TestCapacity TestGoldenRequests TestReservationDrift
//	nodes given back before the end of a capacity block    | yes   | TestEndOfABlock
//	placement groups and partitions                        | yes   | TestGoldenRequests
//	launch templates named by content, few, reused         | yes   | TestTemplatesAreNamedByTheirContent TestTemplatesAreFewAndComeBack
//	launch templates cleaned up, not under a launch        | yes   | TestCollectTemplates
//	launch templates of others                             | yes   | TestForeignTemplate
//	instance profile, or one made for a role               | yes   | TestEnsure TestEnsureMends TestCollect
//	tags of machines, disks, interfaces, fleets            | yes   | TestGoldenRequests TestMotoEverydayCalls
//	machines linked to claims by tags, also in batches     | yes   | TestRoundTrip TestHundredClaimsFit TestRestart
//	names of node and claim as tags once it has joined     | yes   | TestNamesAsTags
//	instant fleets, strategies by capacity type, 60 types  | yes   | TestGoldenRequests TestRequestIsAFunction
//	spot, then on-demand; not spot that is dearer          | yes   | TestCapacityTypesInTurn
//	price overlays, and fleets that go by their order      | yes   | TestAdjust TestLaunchFollowsOverlays; instancetypes/pricing
//	minValues                                              | other | binpack counts offerings
//	machines beyond what was asked for are given back      | yes   | TestSurplusIsGivenBack
//	batches of create, describe and terminate              | yes   | TestManyAreOne TestThousandCreatesAtOnce
//	limits of calls, as published                          | yes   | TestOwnBucketsSpareTheAccount TestPublished TestThousandCreatesAtOnce
//	each fleet error by its code, refusals per offering    | yes   | TestFailuresHaveACure TestConformance
//	what was refused is remembered, longer each time       | other | cloudprovider/availability: TestBackOffGrows
//	failures with cause and cure                           | yes   | TestCauseAndCure TestFailuresHaveACure TestDeath
//	machines that die at once say why                      | yes   | TestDeath
//	prices from the price list and spot history            | yes   | TestOnDemand TestSpot TestPricesFallBack
//	types and zones from EC2 over the catalogue            | yes   | TestRegion TestWithin
//	memory learned from nodes, kept over restarts          | yes   | TestLearnedMemory
//	drift: static fields, image, groups, subnet, reserved  | yes   | TestDrift TestReservationDrift
//	garbage collection of machines without claims          | other | cloudprovider/lifecycle: TestReview
//	interruption queue, all kinds, malformed, foreign      | yes   | TestParse TestReadAndConfirm TestMotoEverydayCalls
//	polling of status checks and scheduled events          | yes   | TestStatusChecks TestWatch
//	repair policies                                        | yes   | TestConformance
//	zonal shift                                            | yes   | TestZonalShift
//	requests shown beforehand                              | yes   | TestDryRunChangesNothing
//	dry-run calls that check permissions                   | yes   | TestPermitted
//	nothing lost or left by faults and restarts            | yes   | TestFaultRun TestWithdraw TestLaunchInterrupted
//	no second machine once EC2 has forgotten client tokens | yes   | TestForgottenTokens TestTokenOfTheDead
//	one reading of the past after a restart, page by page  | yes   | TestRestartAmongMany TestListLearnsWhy
//	memory that has an end                                 | yes   | TestHeapStaysLevel
//	no credential or user data in errors                   | yes   | TestNothingPrivateInErrors TestSecretsStaySecret
package aws
