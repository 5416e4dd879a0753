# SPDX-License-Identifier: Apache-2.0
# The everyday commands. The build itself is CMake's (CMakePresets.json); this file only names what people do often.

JOBS ?= $(shell nproc)
PRESET ?= release
BUILD := build/$(PRESET)

.PHONY: help demo test build bench-vm format tidy install-deps clean

help: ## print this list
	@echo "Rewire: a bytecode VM that runs compiled ML models inside a C++ program."
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22
	@echo
	@echo "Variables: JOBS (now $(JOBS)), PRESET (now $(PRESET); see cmake --list-presets)."

demo: build ## recognise the handwritten digits of examples/digits
	examples/digits/demo.sh $(BUILD)

test: build ## build everything and run all tests
	ctest --preset $(PRESET) --parallel $(JOBS)

# An empty CCACHE launcher means none to CMake; what the user has set wins.
build: install-deps ## configure and build, after installing what is missing
	CMAKE_C_COMPILER_LAUNCHER="$${CMAKE_C_COMPILER_LAUNCHER-$$(command -v ccache)}" \
	CMAKE_CXX_COMPILER_LAUNCHER="$${CMAKE_CXX_COMPILER_LAUNCHER-$$(command -v ccache)}" \
	cmake --preset $(PRESET)
	cmake --build $(BUILD) --parallel $(JOBS)

bench-vm: install-deps ## measure the interpreter loop (tests/bench)
	cmake --preset release -DREWIRE_BUILD_BENCH=ON
	cmake --build build/release --parallel $(JOBS) --target bench-vm
	build/release/tests/bin/bench-vm

format: ## format all sources in place
	tests/ci/format.sh --fix

tidy: install-deps ## run clang-tidy on all sources
	tests/ci/tidy.sh

install-deps: ## install the missing packages of third_party/packages.txt
	@third_party/install.sh

clean: ## remove all build trees
	rm -rf build
