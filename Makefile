# What this project can do, one target each: `make` prints them.
# Nothing has to be set up first: each target sets up what it needs, once.

.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
# With it, every start of the daemon in a test would compile everything: +440 ms, +5 MiB.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
# What `make demo` shows; `make demo DEMO="--rules my.toml"` shows something else.
DEMO ?= --rules examples --allocate fuse=1 --allocate console=2

##@ Use
.PHONY: demo
demo: .venv/ready  ## this machine's own devices at an embedded kubelet
	@$(BIN)/python examples/demo.py $(DEMO)

##@ Test
.PHONY: test
test: packages .venv/ready .venv-floor/ready lint types  ## everything: lint, types, all tests (uses sudo for root)
	@.ci/python-as-root -m pytest

.PHONY: check
check: lint types .venv/ready  ## the quick part: lint, types, architecture, generated files
	@$(BIN)/python -m pytest -q tests/test_architecture.py tests/test_generated.py

.PHONY: lint
lint: .venv/ready  ## ruff: rules and format
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

.PHONY: types
types: .venv/ready  ## mypy, strict
	@$(BIN)/mypy

.PHONY: coverage
coverage: packages .venv/ready .venv-floor/ready  ## all tests, and the lines and branches they miss
	@rm -f .cache/coverage*
	@.ci/python-as-root -m coverage run -m pytest
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report
	@$(BIN)/coverage report --include='genericdp/core/*' --fail-under=100

.PHONY: torture
torture: .venv/ready  ## 20,000 random steps of a node (STEPS=, SEED=)
	@.ci/python-as-root -m tests.torture $(STEPS) $(SEED)

.PHONY: test-vm
test-vm: vm-packages deb .venv/ready  ## the package in an emulated Debian, with real USB (CASES=)
	@.ci/python-as-root -m tests.vm $(CASES)

.PHONY: test-package
test-package: package-packages deb rpm .venv/ready  ## the packages on booted Debians, install to purge (RELEASES=)
	@.ci/python-as-root -m tests.package $(RELEASES)

.PHONY: bench
bench: .venv/ready  ## what the daemon costs here, beside what was promised
	@.ci/python-as-root -m tests.bench

##@ Make
.PHONY: tour
tour: packages .venv/ready  ## the transcripts in the documentation, typed again
	@.ci/python-as-root -m tests.udev.machine testbed -m tests.udev.tour

.PHONY: generate
generate: .venv/ready  ## generated/ and the reference in docs/, from the program
	@$(BIN)/python -m generate

##@ Packages
.PHONY: deb
deb:  ## dist/genericdp_*.deb, checked by lintian
	@.ci/deb

.PHONY: rpm
rpm:  ## dist/genericdp-*.rpm, for Fedora and EL 10
	@.ci/rpm

##@ Set up
.PHONY: venv
venv: .venv/ready .venv-floor/ready  ## .venv (newest libraries), .venv-floor (Debian 12's)

.PHONY: packages
packages:  # asked every time: it takes 10 ms, and a stamp would not see a package go
	@.ci/system-packages
	@.ci/promtool

.PHONY: vm-packages
vm-packages:
	@.ci/system-packages qemu-system-x86 mmdebstrap e2fsprogs kmod util-linux

.PHONY: package-packages
package-packages:
	@.ci/system-packages systemd-container mmdebstrap debian-archive-keyring util-linux iproute2

.venv/ready: pyproject.toml .ci/venv
	@.ci/venv .venv --editable '.[test]'

.venv-floor/ready: .ci/floor.txt .ci/venv
	@.ci/venv .venv-floor --requirement .ci/floor.txt

.PHONY: clean
clean:  ## remove everything that was made, both environments too
	@rm -rf .venv .venv-floor .cache build dist *.egg-info
	@find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

.PHONY: help
help:
	@awk 'BEGIN { FS = ":.*  ## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*  ## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
