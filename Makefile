# Every module of the repository: the library, its provider for AWS and the examples, which go.work joins for development; the judges
# and the operator with the programs that it runs on, which are heavy and by themselves.
MODULES := . cloudprovider/aws examples examples/judges examples/operator examples/operator/cluster/kubernetes examples/operator/cluster/kwok examples/operator/versus/karpenter examples/karpenter
GO ?= go
# The modules with Karpenter need a newer Go than the others. It comes through the module proxy where this one is older.
export GOTOOLCHAIN ?= auto
# What go.work joins.
JOINED := ./... ./cloudprovider/aws/... ./examples/...
NODES ?= 1000

# The race detector needs a C compiler.
CC_FOUND := $(shell command -v $${CC:-cc} 2>/dev/null || command -v gcc 2>/dev/null)
RACE := $(if $(CC_FOUND),-race,)
# Packages that start goroutines or guard against those of others, in tests, too. The race detector has nothing to find in others, nor in
# suites that repeat themselves, which -short leaves out.
SIDE_BY_SIDE = $(call with,"(sync|testing/synctest)"|^[[:space:]]*go [a-z]|\.Go.func)
# The joined packages with a file that has the pattern in it.
with = $(sort $(shell grep -rlE --include='*.go' $(patsubst %,--exclude-dir=%,.cache judges karpenter operator) '$(1)' . | sed 's|/[^/]*$$||'))

.PHONY: sbom vuln site cluster cluster-demo test-cluster test-adaptors versus-cluster scale-cluster versus moto test check vet test-race test-long test-k8s lint tidy generate bench bench-price deps api api-baseline help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# moto emulates AWS and was written by others: an independent judge of what cloudprovider/aws asks for.
MOTO_VERSION := 5.2.1
# Principal Mapper decides whether IAM policies allow a call, and was written by others, too.
PMAPPER_VERSION := 1.1.5
PYTHON ?= $(shell command -v python3 2>/dev/null || command -v python 2>/dev/null)
LOUDLY = printf '\n*** %s ***\n\n'

# OR-Tools' CP-SAT solves small packing instances exactly: an independent judge of binpack's plans and bounds. It shares the
# environment.
ORTOOLS_VERSION := 9.15.6755

moto: ## install moto, which the tests of cloudprovider/aws run against, and OR-Tools, the judge of binpack, into .cache/moto
ifeq ($(PYTHON),)
	@$(LOUDLY) 'NO PYTHON FOUND: THE TESTS OF cloudprovider/aws AGAINST moto ARE SKIPPED'
else
	@grep -qsx '$(MOTO_VERSION) $(PMAPPER_VERSION)' .cache/moto/installed || { rm -rf .cache/moto && mkdir -p .cache && $(PYTHON) -m venv .cache/moto \
	  && .cache/moto/bin/pip install -q --disable-pip-version-check 'moto[server]==$(MOTO_VERSION)' 'principalmapper==$(PMAPPER_VERSION)' && echo '$(MOTO_VERSION) $(PMAPPER_VERSION)' > .cache/moto/installed; } \
	  || { $(LOUDLY) 'moto COULD NOT BE INSTALLED: THE TESTS OF cloudprovider/aws AGAINST IT ARE SKIPPED'; test -z "$$CI"; }
	@grep -qsx '$(ORTOOLS_VERSION)' .cache/moto/ortools || { .cache/moto/bin/pip install -q --disable-pip-version-check 'ortools==$(ORTOOLS_VERSION)' \
	  && echo '$(ORTOOLS_VERSION)' > .cache/moto/ortools; } \
	  || { $(LOUDLY) 'OR-Tools COULD NOT BE INSTALLED: THE TEST OF binpack AGAINST CP-SAT IS SKIPPED'; test -z "$$CI"; }
endif

test: ## what tells in a fresh clone that it works, within five minutes: the tests of the joined modules, without suites that repeat themselves
	$(GO) test -short $(JOINED)

check: vet test-race ## before a change is sent: vet and all tests of every module, the race detector, the judges and the adaptors; property suites at a short count
	$(GO) test -timeout 30m $(JOINED)
	cd examples/judges && $(GO) test ./...
	cd examples/karpenter && $(GO) test -short ./...

vet: ## vet every module but the operator's, which test-cluster vets
	$(GO) vet $(JOINED)
	cd examples/judges && $(GO) vet ./...
	cd examples/karpenter && $(GO) vet ./...

test-race: moto ## the race detector, where anything runs side by side
ifeq ($(RACE),)
	@echo "no C compiler found: the race detector does NOT look at the tests"
else
	$(GO) test -race -short -timeout 30m $(SIDE_BY_SIDE)
endif

# How many random clusters kube-scheduler judges in test-long, half of them in each of its versions; more before a release.
SCENARIOS ?= 1000
# The judges' other versions: each is a go.work that replaces modules, and a build tag for what only one version has.
KUBERNETES_1.37 := GOWORK=$(CURDIR)/examples/judges/kubernetes-1.37.work $(GO) test -tags kubernetes1.37
KARPENTER_1.14 := GOWORK=$(CURDIR)/examples/judges/karpenter-1.14.work $(GO) test -tags karpenter1.14

# The counts of test-long are divided by this. The gate divides; a release, and a change of the package, run them in full.
PARTS ?= 1

test-long: moto ## all tests of every module but the operator's, with the full counts of the property suites and the judges
	JOINERY_LONG=$(PARTS) $(GO) test -timeout 60m -skip '^TestFaultRun$$' $(JOINED)
	JOINERY_LONG=$(PARTS) $(GO) test $(RACE) -timeout 60m -run '^TestFaultRun$$' ./cloudprovider/aws
	cd examples/karpenter && $(GO) test -timeout 30m -short ./...
	cd examples/judges && $(GO) test -timeout 60m -skip 'PlansAreAccepted$$|TestPodsBesideKarpenters' $$($(GO) list ./... | grep -v /deprovision$$)
	cd examples/judges && JOINERY_LONG=$(PARTS) $(GO) test -timeout 60m ./deprovision
	cd examples/judges && $(GO) test -timeout 60m ./replay -run 'PlansAreAccepted$$' -scenarios $$(($(SCENARIOS) / 2)) -v
	cd examples/judges && $(KUBERNETES_1.37) -timeout 30m ./kubejudge ./semantics
	cd examples/judges && $(KUBERNETES_1.37) -timeout 60m ./replay -run 'PlansAreAccepted$$|Quorum' -from $$(($(SCENARIOS) / 2 + 1)) -scenarios $$(($(SCENARIOS) / 2)) -v
	cd examples/judges && $(KUBERNETES_1.37) -timeout 60m ./replay -run 'AcceptedAndWhole$$' -scenarios $(SCENARIOS) -v # a tenth of them with groups
	cd examples/judges && $(GO) test -timeout 60m ./replay -run 'TestPlansAreAccepted$$' -scenarios $$(($(SCENARIOS) / 20)) -pods 1500 -v
	cd examples/judges && $(GO) test -timeout 60m ./replay -run 'TestPodsBesideKarpenters' -karpenter $$(($(SCENARIOS) / 2)) -v
	cd examples/judges && $(KARPENTER_1.14) -timeout 30m ./karpenter

# The oldest minor of the Kubernetes API that the library compiles and passes with, which its go.mod names, and the newest; `make check`
# uses the one of the examples, which is the judges'.
K8S_VERSIONS := v0.34.13 v0.37.2

test-k8s: ## the packages that know the Kubernetes API, with its oldest and its newest minor
	.ci/k8s $(K8S_VERSIONS)

lint: ## the linters of .golangci.yml over every module with code, built from the versions in .ci/tools
	$(GO) -C .ci/tools build -o bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	.ci/tools/bin/golangci-lint run $(JOINED)
	cd examples/judges && ../../.ci/tools/bin/golangci-lint run ./...
	cd examples/operator && ../../.ci/tools/bin/golangci-lint run ./...
	cd examples/karpenter && ../../.ci/tools/bin/golangci-lint run ./...

cluster: ## run a Kubernetes on this machine with the operator in it, until Ctrl-C; the first time it is built, in about five minutes
	cd examples/operator && $(GO) run ./local

cluster-demo: ## the same, playing a demonstration: 0 -> 5 -> 100 -> 0 pods, an interruption, a consolidation, expiry
	cd examples/operator && $(GO) run ./local --demo --ui-bind-address ''

test-cluster: ## the operator's tests on that cluster, in about ten minutes; where its programs cannot be built for lack of a network they are skipped, but not with CI set
	cd examples/operator && $(GO) vet ./... && $(GO) test -timeout 40m ./...

test-adaptors: ## Karpenter itself with providers of this library, on that cluster
	cd examples/karpenter && $(GO) test -timeout 40m ./e2e

versus-cluster: ## Karpenter and the operator on the same cluster and the same day, into examples/operator/VERSUS.md
	cd examples/operator && $(GO) run ./versus -o VERSUS.md

scale-cluster: ## the operator alone brings up a large cluster (NODES=1000, ten pods each), into VERSUS.md, too
	cd examples/operator && $(GO) run ./versus -o VERSUS.md --nodes $(NODES)

tidy: ## fail if go.mod or go.sum of a module is not tidy
	@set -e; for m in $(MODULES) .ci/tools; do (cd $$m && $(GO) mod tidy -diff); done

generate: ## write the embedded EC2 catalogue anew; needs pip and the module proxy
	$(GO) generate $(JOINED)

bench: ## compile + solve at 1k, 10k and 100k pods; each benchmark asserts what it measures
	$(GO) test -run xxx -bench . -benchmem ./examples/pipeline ./binpack ./requirements/...

versus: ## plan the same pods with Karpenter and with Joinery, 1k to 20k of them, and write examples/judges/VERSUS.md
	cd examples/judges && $(GO) run ./versus -o VERSUS.md

bench-price: ## cost, proven gap, time and memory of price-aware plans, into binpack/BENCHMARKS.md, and Karpenter's beside them, into examples/judges/PRICE.md
	$(GO) build -o .ci/tools/bin/report ./examples/pricebench/report
	.ci/tools/bin/report -o binpack/BENCHMARKS.md
	cd examples/judges && $(GO) run ./price -o PRICE.md

sbom: ## what the three released modules are made of, as CycloneDX documents in .cache/sbom; of the last commit
	.ci/sbom

vuln: ## look for known vulnerabilities in what the three released modules call; asks a database, so it needs a network that reaches it
	$(GO) -C .ci/tools build -o bin/govulncheck golang.org/x/vuln/cmd/govulncheck
	@set -e; for m in . cloudprovider/aws examples; do echo "== $$m"; (cd $$m && GOWORK=off $(CURDIR)/.ci/tools/bin/govulncheck ./...); done

site: ## the documentation as a site in .cache/site, to read from the folder or to serve; a dead link fails
	.ci/site/build

deps: ## modules and packages that each package of ours pulls in
	@printf '%-28s %8s %9s\n' package modules packages
	@for m in . cloudprovider/aws; do (cd $$m && export GOWORK=off && for p in $$($(GO) list ./...); do \
	  printf '%-28s %8s %9s\n' $${p#github.com/joinery-sdk/joinery/} \
	    $$($(GO) list -deps -f '{{with .Module}}{{.Path}}{{end}}' $$p | sort -u | grep -vc '^github.com/joinery-sdk/joinery') \
	    $$($(GO) list -deps -f '{{if not .Standard}}{{.ImportPath}}{{end}}' $$p | wc -l); done); done

api: ## compare the exported API with the committed baseline; a break must stand in CHANGELOG.md
	$(GO) -C .ci/tools build -o bin/api ./api
	.ci/tools/bin/api $(JOINED)

api-baseline: ## take today's exported API as the baseline
	$(GO) -C .ci/tools build -o bin/api ./api
	rm -f .ci/api/*.api
	.ci/tools/bin/api -write $(JOINED)
