# A thin front to meson: `make help` says what there is.
#
# BUILD names the build folder, so that several people or compilers can share a checkout:
#   make BUILD=build-clang MESON_FLAGS=... CC=clang test

BUILD ?= build
MESON_FLAGS ?=
# Warnings stop the build in a checkout of the repository, but not for those who build a release.
WERROR ?= $(if $(wildcard .git),true,false)
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 20
SOAK_SECONDS ?= 600
# make bench: a smaller table in fewer rounds if QUICK is 1; what else scripts/bench-peers takes.
QUICK ?=
PEERS_FLAGS ?=

setup = test -f $(1)/build.ninja || meson setup $(1) -Dwerror=$(WERROR) $(MESON_FLAGS) $(2)
asan = -Db_sanitize=address,undefined
tsan = -Db_sanitize=thread
quick = --ranks 2,4 --sizes 4,64K,16M --rounds 2 --seconds 0.5
fuzz = -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false

.PHONY: all
all: $(BUILD)/build.ninja ## build build/espalier, build/libespalier.so, the examples, and the library for MPI programs if an MPI is installed
	@ninja -C $(BUILD) product

.PHONY: reconfigure
reconfigure: $(BUILD)/build.ninja ## look again for what was installed since (an MPI, pytest), and build as make does
	@meson setup --reconfigure $(BUILD) >/dev/null
	@ninja -C $(BUILD) product

.PHONY: everything
everything: $(BUILD)/build.ninja ## the same, and all tests, benchmarks and fuzzers
	@ninja -C $(BUILD)

.PHONY: test
test: bootstrap-test $(BUILD)/build.ninja ## build, run every test, close with "N passed, N failed"
	@scripts/run-tests $(BUILD)

.PHONY: check
check: test check-python check-launchers check-asan check-tsan check-clang check-arm64 check-lab check-lint check-fuzz ## test, then Python, launchers, the lab, sanitizers, linters and fuzzers
	@echo 'check: all passed'

.PHONY: check-python
check-python: ## the Python package with numpy and PyTorch, its types, and a wheel of it
	@scripts/bootstrap python
	@$(call setup,$(BUILD)) && meson setup --reconfigure $(BUILD) >/dev/null
	@ninja -C $(BUILD) >/dev/null && /usr/bin/python3 bindings/torch/build.py --build $(BUILD)
	@scripts/run-tests $(BUILD) --suite bindings
	@scripts/compare-torch --build $(BUILD) --check
	@mypy --config-file bindings/python/pyproject.toml bindings/python/espalier
	@MYPYPATH=bindings/python mypy --strict bindings/python/tests/typed.py
	@scripts/wheel --bundle $(BUILD) $(BUILD)/wheel

.PHONY: check-launchers
check-launchers: $(BUILD)/build.ninja ## jobs under torchrun, both mpiruns, ssh, a Slurm and a Redis of their own; ranks that are killed there; examples
	@scripts/bootstrap launchers
	@scripts/bootstrap python
	@meson setup --reconfigure $(BUILD) >/dev/null
	@ninja -C $(BUILD) >/dev/null && /usr/bin/python3 bindings/torch/build.py --build $(BUILD) >/dev/null
	@scripts/run-tests $(BUILD) --setup all --suite launchers --suite launchers-long --suite examples --suite bindings --suite sched-long --num-processes 1

.PHONY: check-asan
check-asan: bootstrap-check ## all tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(call setup,$(BUILD)-asan,$(asan))
	@scripts/run-tests $(BUILD)-asan --timeout-multiplier 5

.PHONY: check-tsan
check-tsan: bootstrap-check ## all tests under ThreadSanitizer
	@$(call setup,$(BUILD)-tsan,$(tsan))
	@scripts/run-tests $(BUILD)-tsan --timeout-multiplier 5

.PHONY: check-clang
check-clang: bootstrap-check ## all tests, compiled with clang
	@export CC=clang; $(call setup,$(BUILD)-clang)
	@scripts/run-tests $(BUILD)-clang

.PHONY: check-arm64
check-arm64: ## the C tests for arm64, cross-compiled and run in qemu
	@scripts/bootstrap arm64
	@$(call setup,$(BUILD)-arm64,--cross-file scripts/arm64.ini)
	@scripts/run-tests $(BUILD)-arm64 --timeout-multiplier 20 --suite base --suite wire --suite math --suite network_topo --suite network_discover \
		--suite plan --suite transport --suite engine

.PHONY: check-lab
check-lab: $(BUILD)/build.ninja ## racks of hosts in namespaces, for some minutes; as root, or where users may have namespaces
	@scripts/bootstrap lab
	@scripts/run-tests $(BUILD) --setup all --suite lab --suite lab-long

.PHONY: check-lint
check-lint: bootstrap-check $(BUILD)/build.ninja ## clang-tidy and cppcheck over all sources
	@scripts/lint $(BUILD)

.PHONY: check-fuzz
check-fuzz: bootstrap-check ## every fuzzer for FUZZ_SECONDS
	@export CC=clang; $(call setup,$(BUILD)-fuzz,$(fuzz))
	@scripts/fuzz $(BUILD)-fuzz $(FUZZ_SECONDS)

.PHONY: soak
soak: everything ## random seeds for SOAK_SECONDS
	@scripts/soak $(BUILD) $(SOAK_SECONDS)

.PHONY: demo
demo: all ## eight workers on this machine train a small network, under several plans
	@$(BUILD)/espalier demo

.PHONY: bench bench-peers
bench bench-peers: everything ## allreduce beside Open MPI, MPICH, Gloo and PyTorch (bench/peers); QUICK=1: a smaller table
	@scripts/bootstrap bench
	@scripts/bench-peers --build $(BUILD) $(if $(filter-out 0 no,$(QUICK)),$(quick)) $(PEERS_FLAGS)

.PHONY: bench-faults
bench-faults: everything ## ranks that are killed and stopped, beside Gloo and Open MPI, and strangers at the ports; QUICK=1: few runs
	@scripts/bootstrap bench
	@scripts/bench-faults --build $(BUILD) $(if $(filter-out 0 no,$(QUICK)),--quick,--phases)
	@scripts/bench-strangers --build $(BUILD) $(if $(filter-out 0 no,$(QUICK)),--rounds 3 --seconds 1)

.PHONY: bench-sim
bench-sim: everything ## what the simulator predicts beside SimGrid and beside jobs on emulated racks; QUICK=1: fewer rounds
	@scripts/bootstrap bench
	@scripts/bootstrap lab
	@scripts/bench-simgrid --build $(BUILD) $(if $(filter-out 0 no,$(QUICK)),--race 128 --rounds 1)
	@scripts/bench-sim-lab --build $(BUILD) $(if $(filter-out 0 no,$(QUICK)),--sizes 4M --rounds 1)

.PHONY: bench-micro
bench-micro: everything ## benchmarks of single parts: kernels, executor, transports
	@meson test -C $(BUILD) --benchmark --no-rebuild --verbose --num-processes 1

.PHONY: golden
golden: $(BUILD)/build.ninja ## write tests/golden/*.plan anew, after a wanted change
	@ninja -C $(BUILD) tests/golden/golden_test
	@$(BUILD)/tests/golden/golden_test --renew tests/golden

.PHONY: pictures
pictures: all ## draw docs/pictures anew
	@scripts/draw-pictures $(BUILD)/espalier

.PHONY: install
install: all ## install under PREFIX (and DESTDIR)
	@meson configure $(BUILD) --prefix $(PREFIX)
	@ninja -C $(BUILD) product
	@DESTDIR=$(DESTDIR) meson install --no-rebuild -C $(BUILD)

.PHONY: clean
clean: ## remove the build folders
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-clang $(BUILD)-arm64 $(BUILD)-fuzz

.PHONY: help
help: ## this text
	@sed -n 's/^\([a-z0-9-]*\)[a-z -]*:.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 17
	@echo 'variables: BUILD, CC, MESON_FLAGS, WERROR, PREFIX, DESTDIR, FUZZ_SECONDS, SOAK_SECONDS, QUICK, PEERS_FLAGS'

.PHONY: bootstrap bootstrap-test bootstrap-check
bootstrap:
	@scripts/bootstrap build
# A build folder does not know of an MPI that is installed later.
bootstrap-test:
	@news=$$(scripts/bootstrap test) || exit 1; test -z "$$news" || { echo "$$news"; \
		test ! -f $(BUILD)/build.ninja || meson setup --reconfigure $(BUILD) >/dev/null; }
bootstrap-check:
	@scripts/bootstrap check

$(BUILD)/build.ninja: | bootstrap
	@$(call setup,$(BUILD))
