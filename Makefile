# Everything here also works by hand; these are the short names.
GO    ?= go
TOOL  := $(GO) tool -modfile=tools/go.mod

.PHONY: help demo test race bench verify format lint generate drift audit images compose-test secure-test e2e alerts dashboards manifests faults flink flink-image python fraud-model

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-13s %s\n", $$1, $$2}'

demo: ## run the whole shop on embedded infrastructure
	$(GO) run ./cmd/feira demo

test: ## the README's test command
	$(GO) test ./...

race: ## the tests under the race detector
	$(GO) test -race ./...

bench: ## the benchmarks whose ratios the README quotes
	$(GO) test -run '^$$' -bench 'Append|Checkout' -benchtime 3x ./shared/eventstore ./services/orders
	$(GO) test -run '^$$' -bench 'Operator|Drain' -benchtime 1x ./shared/operator ./shared/relay
	$(GO) test -run '^$$' -bench Decision ./services/fraud

verify: format lint drift ## format, lint, layers, generated code, modules
	$(GO) mod verify

format: ## fail on files that gofmt would change
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not formatted; run gofmt -w on:"; echo "$$out"; exit 1; fi

lint: ## golangci-lint, with the layer rules
	$(TOOL) golangci-lint run ./...

generate: ## rewrite generated code
	$(GO) generate ./...

drift: ## fail when generated code is not what the sources give
	@before=$$(git status --porcelain | sha256sum; git diff | sha256sum); $(GO) generate ./... ; \
	after=$$(git status --porcelain | sha256sum; git diff | sha256sum); \
	if [ "$$before" != "$$after" ]; then echo "generated code is stale; run make generate and commit"; git status --porcelain; exit 1; fi

audit: ## known vulnerabilities (needs the public database)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest ./...

KAFKA ?= 4.4.0

images: ## images of feira, Kafka (KAFKA=4.4.0) and Postgres, without an image registry
	deployments/images/build.sh $(KAFKA)

compose-test: ## the Compose file for real: needs Docker with Compose, and make images
	$(GO) test -tags e2e -count 1 -timeout 20m -v ./e2e/compose

secure-test: ## three brokers with TLS and SCRAM, one killed: needs Docker; KAFKA=4.0.0 is another version
	KAFKA=$(KAFKA) TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1 TESTCONTAINERS_RYUK_DISABLED=true \
		$(GO) test -tags e2e -count 1 -timeout 15m -v ./e2e/secure

e2e: ## the shop on real Kafka and Postgres: needs Docker; KAFKA=4.0.0 is another version, KAFKA=embedded needs no Docker
	KAFKA=$(KAFKA) POSTGRES=$(POSTGRES) $(GO) test -tags e2e -count=1 -failfast -timeout 20m -v ./e2e

python: ## the five lines of examples/python against the demo: needs Python, which fetches kafka-python
	$(GO) test -tags e2e -count=1 -timeout 15m -v ./e2e/python

EVENTS ?= 2000000

flink: ## Flink and the shop's operators on one history must agree (EVENTS=200000, SEED=…): needs Docker, a JDK, Maven
	EVENTS=$(EVENTS) SEED=$(SEED) KAFKA=$(KAFKA) $(GO) test -tags e2e -count=1 -timeout 60m -v ./e2e/flink

flink-image: ## the image of Flink's jobs, for the Compose profile flink
	deployments/images/flink/build.sh

SCALE ?= 1

faults: ## the fault tests in full (SCALE=0.1: a tenth) and their mutants; goes on where it was; needs Docker, and make images
	$(GO) run ./internal/faults --scale $(SCALE) $(FAULTS)

alerts: ## promtool: the configuration, the rules and each alert's tests; needs Prometheus
	$(GO) test -tags e2e -count=1 -timeout 10m -v -run '^TestAlerts$$' ./e2e/watch

dashboards: ## a real Prometheus beside a demo answers every query of dashboards and rules; needs Prometheus
	$(GO) test -tags e2e -count=1 -timeout 10m -v -run '^TestEveryQueryHasData$$' ./e2e/watch

manifests: ## the Kubernetes manifests, held to the API's types, to each other and to feira
	cd deployments/kubernetes && $(GO) vet ./... && $(GO) test -count=1 ./... # the cache does not see that feira changed

OUT ?= services/fraud/model.json

fraud-model: ## train fraud's model: FEATURES=… from feira admin fraud features, LABELS=… from feira demo --thieves; needs Python
	services/fraud/train/train.sh "$(abspath $(FEATURES))" "$(abspath $(LABELS))" "$(abspath $(OUT))" $(TRAIN)
