# make help lists what there is. Go 1.25 or newer; the real servers of check and
# bench install themselves and need Linux, Node 20 (npm), Java 17 and Maven.

ACTIONLINT    := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK   := golang.org/x/vuln/cmd/govulncheck@v1.9.0

MODULES := $(patsubst ./%,%,$(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path './.engines/*' | sort)))
OTHERS  := $(filter-out .,$(MODULES))

FUZZTIME   ?= 10s
FUZZEXECS  ?= 0
SOAKCHECKS ?= 20000
SOAKSEEDS  ?= 100000
SOAKFOR    ?= 8760h
FAULTED    ?= 100000
SAMPLE     ?= 300
SEED       ?= 1
REGIONSFOR ?= 10m

# Of bench: what is played, by whom, how often, over which engine; a checkout of dynamolock.
RUNS       ?= 5
SCENARIOS  ?=
CONTENDERS ?=
ENGINE     ?= dynoxide
PUBLISH    ?=
DYNAMOLOCK ?=

.PHONY: help test check lint govulncheck fuzz soak regions mutants spec bench bench-engine bench-store engines interop screenshots dist tags

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# go test starts and reports packages in the order given. The slow ones come last. The first
# of them is the command, whose tests mostly wait for leases: sixteen run at once, and two
# other packages beside them, however few processors there are. To collect garbage less often
# saves a tenth of the time. Packages are named by their import paths, as a directory may have
# a space in its name.
ROOT = github.com/leasehold-go/leasehold
SLOW = $(addprefix $(ROOT)/,internal/cli examples internal/layouttest internal/renewals internal/ambiguity internal/behaviour internal/hold internal/simulation)

test: ## Test the library, the engine and the command; needs Go alone
	@echo "Tests for two minutes on two cores; the first time it also compiles for almost two. It says each package as it is done; the longest come last."
	@GOGC=400 go test -short -p 3 -parallel 16 -timeout 30m $$(go list ./... | grep -vxF "$$(printf '%s\n' $(SLOW))") $(SLOW)

check: lint govulncheck ## Lint and test every module, what is released with the race detector, and the real servers
	go test -race -parallel 8 -timeout 30m ./...
	@# In make test and under the race detector, these packages try fewer cases.
	go test -timeout 30m ./internal/ambiguity ./internal/behaviour ./internal/hold ./internal/lease ./internal/renewals ./internal/simulation
	@# In its own directory go test shows what it prints: how much was done.
	cd internal/simulation && LEASEHOLD_FIRST=1 LEASEHOLD_FAULTED=$(FAULTED) go test -timeout 60m -run '^TestSimulationAtScaleFindsNoViolation$$'
	cd proof/robustness && go test -timeout 30m ./aws ./histories ./load
	$(MAKE) fuzz
	@# Interop mostly waits, for leases and browsers: two packages at once. The others
	@# have the machine to themselves, as their clocks are real.
	cd proof && go test -p 2 -parallel 4 -timeout 50m $$(go list ./interop/... | grep -v /adapters)
	cd proof && go test -p 1 -timeout 50m ./bench/... ./interop/adapters ./release/... ./spec/...
	cd proof/robustness && go test -race -p 1 -timeout 50m ./...
	@for m in $(filter-out proof,$(OTHERS)); do echo "== $$m"; (cd $$m && go test -race ./...) || exit 1; done

lint: ## Run gofmt, go vet and golangci-lint (with staticcheck) over every module, actionlint over the workflows
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt -w these:"; echo "$$unformatted"; exit 1; }
	go run $(ACTIONLINT) -shellcheck= -pyflakes=
	@for m in $(MODULES); do echo "== lint $$m"; (cd $$m && \
		go vet ./... && \
		go run $(GOLANGCI_LINT) run --config "$(CURDIR)/.golangci.yaml" ./...) || exit 1; done

govulncheck: ## Look for known vulnerabilities in what is released, if their database answers
	@cd proof/release && go run . govulncheck $(GOVULNCHECK)

fuzz: ## Fuzz each target for FUZZTIME (10s), or FUZZEXECS times; two at once
	cd proof/robustness && go run ./fuzz -time $(FUZZTIME) -executions $(FUZZEXECS)

soak: ## Try histories and sequences SOAKSEEDS (100000) and SOAKCHECKS (20000) times; then simulate until Ctrl-C, or for SOAKFOR
	cd proof/robustness && LEASEHOLD_HISTORIES=$$(($(SOAKSEEDS) * 10)) go test -timeout 0 -v -run 'Histories$$' ./histories
	cd proof/robustness && LEASEHOLD_CYCLES=1000000 go test -timeout 0 -v -run Cycles ./load
	cd proof/spec && LEASEHOLD_BOUNDS=1 LEASEHOLD_SEEDS=$$(($(SOAKSEEDS) / 10)) go run .
	$(MAKE) fuzz FUZZTIME=10m
	cd proof/interop && go test -run '^TestLocaldynamoAnswersLikeDynoxide$$' -timeout 0 -rapid.checks $(SOAKCHECKS) .
	cd proof/robustness && LEASEHOLD_KILLS=1000 LEASEHOLD_PAUSES=1000 LEASEHOLD_REGIONS_FOR=10m go test -race -count=1 -timeout 0 -v ./processes | grep -v '^ *=== '
	cd internal/simulation && LEASEHOLD_FOR=$(SOAKFOR) go test $(SOAKFLAGS) -timeout 0 -run '^TestSimulationAtScaleFindsNoViolation$$'

regions: ## Darken Regions of a global table in turn for REGIONSFOR (10m) while real processes lock keys; then play an outage of home with one Region and with several
	cd proof/robustness && LEASEHOLD_REGIONS_FOR=$(REGIONSFOR) go test -count=1 -timeout 0 -v -run Region ./processes

mutants: ## Break the protocol in SAMPLE (300) places, one at a time, chosen by SEED (1), and ask the tests
	cd proof/robustness && go run ./mutation -sample $(SAMPLE) -seed $(SEED)

spec: ## Search every state of the models of the protocol, with each rule and without, and ask them for histories of the simulation; needs spin and a C compiler
	@cd proof/spec && go run .

bench: ## Play lock libraries against each other, RUNS (5) times, in 50 minutes; for less SCENARIOS="cycle takeover", CONTENDERS=ours,Java; DYNAMOLOCK=CHECKOUT; PUBLISH=1 writes docs/internals/performance.md
	cd proof/bench && $(if $(DYNAMOLOCK),LEASEHOLD_DYNAMOLOCK="$(abspath $(DYNAMOLOCK))") go run . -runs $(RUNS) -engine "$(ENGINE)" -scenarios "$(SCENARIOS)" -contenders "$(CONTENDERS)" -out ../../.engines/bench.json $(if $(PUBLISH),-docs ../../docs/internals)

bench-engine: ## Compare the engine's conditional updates with dynoxide's, five runs
	cd proof/interop && go run ./cmd/engines run dynoxide \
		go -C ../.. test -run '^$$' -bench '^BenchmarkConditionalUpdate$$' -count 5 ./localdynamo | go run ./cmd/benchratio

bench-store: ## Compare the durable writes of one process and of four that share a file with bbolt's floor, five runs
	go test -run '^$$' -bench '^BenchmarkDurableWrites$$' -benchtime 1000x -count 5 ./localdynamo/boltstore

engines: ## Install the real servers into .engines
	cd proof/interop && go run ./cmd/engines install

interop: ## Play the lock libraries of others and ours on one table, and show the results
	cd proof/interop && go test -count=1 -json -timeout 1h ./sharing | go run ./cmd/sharingtable

screenshots: ## Write pictures of each view of leasehold ui to .engines/screenshots
	cd proof/interop && go test -count=1 -run '^TestEveryViewOfPageFitsScreenAndLogsNoErrors$$' ./ui -screenshots "$(CURDIR)/.engines/screenshots"

dist: ## Build the archives of a release into dist, twice, and compare the two
	cd proof/release && go run . dist -o ../../dist

tags: ## Ask whether the commit may be tagged: make tags VERSION=v0.1.0
	cd proof/release && go run . tags $(VERSION)
