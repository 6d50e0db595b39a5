# `make` prints all targets. Each one sets up what it needs, so nothing has to be prepared.

.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
# If it were set, each daemon that a test starts would compile everything: +440 ms, +5 MiB.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
# The options of `make demo`; override them like this: make demo DEMO="--rules my.toml"
DEMO ?= --rules examples --allocate fuse=1 --allocate console=2
# Each process takes whole files of tests, in the order of their names: the largest ones would otherwise come first.
# A process that crashes ends the run: pytest-xdist would wait for its replacement forever.
# One more than there are cores: many tests wait for a timeout, a process or the kernel.
PARALLEL := --numprocesses=$(shell expr `nproc` + 1) --maxprocesses=4 --max-worker-restart=0 --dist=loadfile --no-loadscope-reorder

##@ Use
.PHONY: demo
demo: .venv/ready  ## this machine's devices and the rules in examples/*.toml, with a simulated kubelet
	@$(BIN)/python examples/demo.py $(DEMO)

##@ Test
# mypy takes one core. Meanwhile, another one makes the second environment, and compiles the tests, which each
# process of pytest would do again.
.PHONY: test
test: packages .venv/ready  ## lint, types and all tests (uses sudo if not root)
	@{ $(MAKE) .venv-floor/ready; $(BIN)/python -m pytest --collect-only -qq; } >/dev/null 2>&1 & \
	$(MAKE) lint types; status=$$?; wait; exit $$status
	@$(MAKE) -s .venv-floor/ready
	@.ci/python-as-root -m pytest $(PARALLEL)

.PHONY: check
check: lint types .venv/ready  ## the quick checks: lint, types, architecture, generated files
	@$(BIN)/python -m pytest -q tests/written/test_architecture.py tests/written/test_generated.py

.PHONY: lint
lint: .venv/ready  ## ruff: rules and format
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

.PHONY: types
types: .venv/ready  ## mypy, strict
	@$(BIN)/mypy

.PHONY: coverage
coverage: packages .venv/ready .venv-floor/ready  ## all tests, with the lines and branches they miss
	@rm -f .cache/coverage*
	@.ci/python-as-root -m coverage run -m pytest
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report
	@$(BIN)/coverage report --include='genericdp/core/*' --fail-under=100

.PHONY: torture
torture: .venv/ready  ## 20,000 random steps on a simulated node (STEPS=, SEED=)
	@.ci/python-as-root -m tests.torture $(STEPS) $(SEED)

.PHONY: fuzz
fuzz: .venv/ready  ## attack everything that others can reach, for 5 minutes (MINUTES=, SEED=, TARGETS=)
	@.ci/python-as-root -m tests.fuzz $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(TARGETS)

.PHONY: soak
soak: packages .venv/ready  ## an hour of random operations; nothing may grow (MINUTES=, SEED=)
	@.ci/python-as-root -m tests.udev.machine hotplug -m tests.soak $(or $(MINUTES),60) $(SEED)

.PHONY: test-vm
test-vm: vm-packages deb .venv/ready  ## the package on emulated Debians with USB devices and real containers (CASES=)
	@.ci/python-as-root -m tests.vm $(CASES)

.PHONY: test-package
test-package: package-packages deb rpm .venv/ready  ## the packages on booted Debian systems (RELEASES=)
	@.ci/python-as-root -m tests.package $(RELEASES)

.PHONY: test-image
test-image: test-image-packages image .venv/ready  ## the container image, run as the DaemonSet runs it (CASES=)
	@.ci/python-as-root -m tests.image $(CASES)

.PHONY: test-chart
test-chart: .venv-chart/ready .cache/kustomize  ## manifests and chart, rendered by kustomize and Helm
	@.venv-chart/bin/python -m tests.kubernetes

.PHONY: bench
bench: .venv/ready  ## measure the daemon's costs against their targets
	@.ci/python-as-root -m tests.bench

##@ Make
.PHONY: tour
tour: packages .venv/ready  ## the transcripts in the documentation, typed again
	@.ci/python-as-root -m tests.udev.machine testbed -m tests.udev.tour

.PHONY: generate
generate: .venv/ready  ## generated/ and the reference in docs/, from the program
	@$(BIN)/python -m generate

.PHONY: renderings
renderings: .venv-chart/ready .cache/kustomize  ## what `make test` knows of manifests and chart, rendered again
	@.venv-chart/bin/python -m tests.kubernetes --write

##@ Packages
.PHONY: deb
deb:  ## dist/genericdp_*.deb, checked with lintian
	@.ci/deb

.PHONY: image
image: image-packages deb  ## the container image in build/image, for Kubernetes (MIRROR=, NAME=)
	@.ci/image $(if $(MIRROR),--mirror $(MIRROR)) $(if $(NAME),--name $(NAME))

.PHONY: rpm
rpm:  ## dist/genericdp-*.rpm, for Fedora and EL 10
	@.ci/rpm

##@ Set up
.PHONY: venv
venv: .venv/ready .venv-floor/ready  ## .venv (newest libraries), .venv-floor (Debian 12's)

.PHONY: packages
packages:  # checked every time: it takes 10 ms, and a stamp would miss a removed package
	@.ci/system-packages
	@.ci/promtool

.PHONY: vm-packages
vm-packages:
	@.ci/system-packages qemu-system-x86 mmdebstrap e2fsprogs kmod util-linux

.PHONY: image-packages
image-packages:
	@.ci/system-packages python3-minimal dpkg mmdebstrap debian-archive-keyring

# containers-common: the seccomp profile that runtimes use by default.
.PHONY: test-image-packages
test-image-packages: packages
	@.ci/system-packages runc umoci skopeo golang-github-containers-common binutils util-linux

.PHONY: package-packages
package-packages:
	@.ci/system-packages systemd-container mmdebstrap debian-archive-keyring util-linux iproute2

.venv/ready: pyproject.toml .ci/venv
	@.ci/venv .venv --editable '.[test]'

.venv-floor/ready: .ci/floor.txt .ci/venv
	@.ci/venv .venv-floor --requirement .ci/floor.txt

.venv-chart/ready: .ci/chart.txt .ci/venv
	@.ci/venv .venv-chart --requirement .ci/chart.txt

.cache/kustomize: .ci/kustomize
	@.ci/kustomize

.PHONY: clean
clean:  ## remove all generated files and both environments
	@rm -rf .venv .venv-floor .venv-chart .cache build dist *.egg-info
	@find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

.PHONY: help
help:
	@awk 'BEGIN { FS = ":.*  ## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*  ## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
