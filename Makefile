# HyperFleet. `make` alone lists what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help
# Arguments for the service, for instance: make run ARGS="--server-port 8010"
ARGS ?=

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- Use ------------------------------------------------------------------------------------

SETUPS := setup-demo setup-fleet setup-test setup-bench setup-containers setup-kubernetes setup-clients setup-fuzz setup-lint setup-all
.PHONY: setup $(SETUPS) run run-auth run-fleet services demo conformance demo-fleet
setup: ## Install what `make run` needs, or say exactly what to install
	@scripts/setup run

setup-all: ## The same for everything that contributors need (scripts/setup lists the groups)
$(SETUPS): setup-%:
	@scripts/setup run $*

run: setup ## Build and serve on 127.0.0.1:8000 with a private PostgreSQL (Ctrl-C stops; ARGS="…")
	@cargo build --bin hyperfleet-api
	@exec cargo run --quiet --bin hyperfleet-api -- dev $(ARGS)

# The first token makes the key; the service reads the public half of it.
run-auth: setup ## The same, for callers with a token; says how to get one (ARGS="…")
	@cargo build --bin hyperfleet-api
	@target/debug/hyperfleet-api dev-token > /dev/null
	@exec cargo run --quiet --bin hyperfleet-api -- dev --config examples/auth.yaml $(ARGS)

run-fleet: setup-fleet ## Build fleetd and run it on a throw-away etcd; says how to call it (Ctrl-C stops both)
	@cargo build --quiet --bin fleetd
	@exec scripts/run-fleet

services: setup-fleet ## Start a throw-away PostgreSQL and etcd on free ports, and say where (Ctrl-C stops)
	@scripts/devkit services

demo: setup-demo ## Play a cluster's whole life against `make run`, checking each answer (BASE=http://host:port)
	@examples/demo

conformance: setup ## Play the API's rules against a server (BASE=http://host:port ARGS="--only search")
	@cargo build --quiet -p hyperfleet-conformance
	@target/debug/hyperfleet-conformance --base $(or $(BASE),http://127.0.0.1:8000) $(ARGS)

demo-fleet: setup-test ## Boot three machines and the API; run units and a node pool, kill a machine, drain another (root)
	@examples/demo-fleet


# ---- Package --------------------------------------------------------------------------------

.PHONY: image image-try packages
image: setup ## Build the container image with docker or podman, and check it (IMAGE=hyperfleet:dev BASE_IMAGE=…)
	@scripts/image

image-try: image ## The same with a private PostgreSQL inside: docker run --rm -p 127.0.0.1:8000:8000 hyperfleet:try
	@"$$(scripts/container-engine)" build --quiet --tag hyperfleet:try --build-arg "HYPERFLEET_IMAGE=$(or $(IMAGE),hyperfleet:dev)" deploy/try

packages: setup ## Build Debian packages into target/debian (cargo-deb)
	@scripts/packages

.PHONY: release release-check
release: setup ## Build all that a release has, with checksums, into target/release-VERSION
	@scripts/release

release-check: setup ## Build the release twice, in two folders, and compare the bytes (two release builds)
	@scripts/release-check

# ---- Test -----------------------------------------------------------------------------------

.PHONY: book test test-image test-kubernetes test-operations test-packages test-upgrade check chart chart-reference fuzz clients deny sbom chaos check-long fmt lint doc schema sqlx sqlx-check openapi etcd-protoset config-reference fleetctl-reference mutants fuzz-search fuzz-units test-cluster fleet-seeds
test: setup-test ## Build and run every test that boots no machine; they start their own PostgreSQL
	cargo test

# ALONE asserts the bounds of docs/internals/testing.md, without the time that busy machines need, and keeps etcd away longer.
test-cluster: setup-test ## Boot machines with a systemd of their own, break fleet on them, play its demos (root; ALONE=1 one test at a time)
	@cargo build --quiet --bin hyperfleet-api --bin fleetctl
	$(if $(ALONE),CLUSTER_ALONE=1 OUTAGE_SECONDS=$(or $(OUTAGE_SECONDS),300) RUST_TEST_THREADS=1) cargo test --test cluster -- --show-output

test-image: setup-containers ## Run the container image and docker-compose.yml by podman, with programs as `make test` builds them (root)
	@tests/image/run

test-kubernetes: setup-kubernetes ## Install, upgrade and remove the Helm chart on a Kubernetes of its own, built from Go modules, once (root)
	@tests/kubernetes/run

test-operations: setup-test ## Run the commands of docs/operations/backup.md and restore.md on a real PostgreSQL and etcd (root)
	@tests/operations/run

test-packages: setup-test ## Install, upgrade and purge the Debian packages on a machine with a systemd of its own (root)
	@tests/packages/run

test-upgrade: setup-test ## Upgrade from the previous release and back under load; builds it from its commit, once
	@tests/upgrade/run

check: fmt lint doc book deny sqlx-check chart test test-cluster test-upgrade fuzz clients test-image test-kubernetes test-operations test-packages ## Everything that CI runs

chart: setup ## Lint the Helm chart; builds helm from Go modules, once
	@scripts/chart

chart-reference: ## Renew the chart's README.md and known values after changing its values or their schema
	@scripts/chart-generate

fuzz: setup-demo ## Fuzz the API from its OpenAPI document, and try a generated client (CASES=20 SEED=1)
	@CASES=$(CASES) SEED=$(SEED) tests/fuzz/run

clients: setup-demo ## Lint the OpenAPI document, generate clients from it in Go, Java, TypeScript and Rust, and try each
	@tests/clients/run

deny: setup ## Check licences, banned and foreign crates, known vulnerabilities (cargo-deny)
	@scripts/deny

sbom: setup ## List what the program is made of, as CycloneDX JSON in target/sbom (cargo-cyclonedx)
	@scripts/sbom

chaos: setup-test ## Break things around a release build and check that nothing is lost (ARGS="killed …")
	@cargo build --quiet --release --bin hyperfleet-api
	@tests/chaos/run $(ARGS)

check-long: chaos mutants ## What takes too long for CI; figures in docs/

fmt: ## Check the formatting
	cargo fmt --check

lint: setup-lint ## Clippy, no warnings allowed, shellcheck, and plain words (scripts/words; builds Vale from Go modules, once)
	cargo clippy --all-targets -- -D warnings
	cargo clippy --test cluster -- -D warnings
	@scripts/shellcheck
	@scripts/words

doc: setup ## Build the API documentation, no warnings allowed
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --document-private-items

book: setup ## Build the documentation as a book in target/book, and check its links (mdBook)
	@scripts/book

.PHONY: pictures
pictures: setup-demo ## Renew the pictures of terminals in docs/images (rich, from PyPI)
	@cargo build --quiet --bin hyperfleet-api
	@[ -x .dev/pictures/bin/python ] || { python3 -m venv .dev/pictures && .dev/pictures/bin/pip install --quiet 'rich==15.0.0'; }
	@.dev/pictures/bin/python scripts/pictures

# Query metadata straight from the macros, against the schema that the migrations make: needs no
# sqlx-cli. `touch`, because cargo does not know that the schema moved.
.dev/sqlx: setup FORCE
	@rm -rf $@ && mkdir -p $@ && touch crates/storage/src/lib.rs crates/import/src/lib.rs
	@scripts/devkit postgres scripts/sqlx-metadata $@

schema: setup ## Renew migrations/schema.sql after adding a migration
	@scripts/devkit postgres bash -euo pipefail -c 'for file in migrations/[0-9]*.sql; do psql --quiet --no-psqlrc --single-transaction -v ON_ERROR_STOP=1 "$$DATABASE_URL" --file "$$file" > /dev/null; done; scripts/schema "$$DATABASE_URL" > migrations/schema.sql'

sqlx: .dev/sqlx ## Renew .sqlx after editing SQL or a migration
	rm -rf .sqlx && cp -r .dev/sqlx .sqlx

sqlx-check: .dev/sqlx ## Check that .sqlx fits the code and the migrations
	diff -r .dev/sqlx .sqlx

openapi: setup ## Renew openapi/*.yaml after changing what the APIs take or answer
	@mkdir -p .dev
	cargo run --quiet --bin hyperfleet-api -- openapi --config /dev/null > .dev/openapi.yaml
	mv .dev/openapi.yaml openapi/openapi.yaml
	cargo run --quiet --bin hyperfleet-api -- openapi --fleet > .dev/fleet.yaml
	mv .dev/fleet.yaml openapi/fleet.yaml

etcd-protoset: ## Renew scripts/etcd.protoset after an update of etcd-client (needs protoc)
	@scripts/etcd-protoset

config-reference: setup ## Renew the tables of settings in docs/ after changing settings
	@mkdir -p .dev
	@cargo build --quiet --bin hyperfleet-api --bin fleetd
	@for pair in hyperfleet-api:reference/configuration fleetd:reference/fleetd-settings; do \
		doc=docs/$${pair#*:}.md; \
		{ sed '/^<!-- settings -->$$/q' $$doc; target/debug/$${pair%:*} config reference; \
		  sed -n '/^<!-- \/settings -->$$/,$$p' $$doc; } > .dev/reference.md && mv .dev/reference.md $$doc || exit 1; done

fleetctl-reference: setup ## Renew docs/reference/fleetctl.md after changing the command line of fleetctl
	@mkdir -p .dev
	cargo run --quiet --bin fleetctl -- reference > .dev/fleetctl.md
	mv .dev/fleetctl.md docs/reference/fleetctl.md

mutants: ## Change the domain in every small way and see that a test fails (cargo-mutants)
	@command -v cargo-mutants >/dev/null || cargo install --locked cargo-mutants
	cargo mutants --workspace --file 'crates/domain/src/**' --file 'crates/audit/src/**' --file 'crates/expressions/src/**' --file 'crates/fleet-model/src/**' --baseline skip --timeout 120 --jobs 2 --output target --cargo-arg=--lib

# Stable Rust will do: without a sanitizer cargo-fuzz asks the compiler for nothing unstable. What is
# found goes beside the corpus, not into it (docs/internals/testing.md).
fuzz-search: setup ## Look for a text that breaks a law of searches (cargo-fuzz; SECONDS=60)
	@command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
	@mkdir -p fuzz/found/search
	cargo fuzz run --sanitizer none search fuzz/found/search fuzz/corpus/search -- -dict=fuzz/search.dict \
		-max_len=4200 -max_total_time=$(or $(SECONDS),60)

fuzz-units: setup ## Look for a unit file that breaks a law of unit files (cargo-fuzz; SECONDS=60)
	@command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
	@mkdir -p fuzz/found/unit_file
	cargo fuzz run --sanitizer none unit_file fuzz/found/unit_file fuzz/corpus/unit_file -- -dict=fuzz/unit_file.dict \
		-max_len=4200 -max_total_time=$(or $(SECONDS),60)

fleet-seeds: setup-fleet ## Simulate engines that freeze, fail and are killed, and machines that boot again (SEEDS=1000; FLEET_SEED=n repeats one)
	FLEET_SEEDS=$(if $(SEEDS),$(SEEDS),1000) cargo test -p hyperfleet-fleet --test it -- engine::simulation reboots --nocapture

# ---- Measure --------------------------------------------------------------------------------

.PHONY: bench bench-watch bench-search bench-engine bench-fleet bench-fleet-adapter
# With ARGS only what they name is measured, so no watchers.
bench: setup-bench ## Measure a release build beside its database's ceiling, and watchers (N=1000000 SECONDS=5 ARGS="--beside OLD")
	@cargo build --quiet --release --bin hyperfleet-api
	@bench/run $(if $(N),--clusters $(N)) $(if $(SECONDS),--seconds $(SECONDS)) $(ARGS)
	$(if $(ARGS),,@bench/watch $(if $(SECONDS),--seconds $(SECONDS)))

bench-watch: setup-bench ## Measure how soon watchers have a change of a release server, and what they cost (ARGS="--watchers 200")
	@cargo build --quiet --release --bin hyperfleet-api
	@bench/watch $(ARGS)

bench-search: setup ## Measure that reading a search takes time in proportion to its length
	cargo bench --quiet -p hyperfleet --bench search

bench-engine: setup-fleet ## Measure what the engine's decisions cost, up to 10,000 machines and 100,000 units
	cargo bench --quiet -p hyperfleet-fleet-model --bench engine

bench-fleet: setup-fleet ## Measure fleet with 200 agents and 10,000 units on one etcd (ARGS="units=500 machines=10 idle=5")
	@cargo build --quiet --release --bin fleetctl
	cargo bench --quiet -p fleetd --bench fleet -- $(ARGS)

bench-fleet-adapter: setup-fleet ## Measure node pools that become units on 50 simulated machines (ARGS="pools=100 restart=300 idle=5")
	cargo bench --quiet -p hyperfleet --bench fleet_adapter -- $(ARGS)

FORCE:
