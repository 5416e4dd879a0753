# SPDX-License-Identifier: Apache-2.0
# The everyday commands. The build itself is CMake's (CMakePresets.json); this file only names what people do often.

JOBS ?= $(shell nproc)
PRESET ?= release
BUILD := build/$(PRESET)
BENCH_VM := build/release/tests/bin/bench-vm
MODELS := tests/models/requirements/models.txt
TVM_CASES := build/release/tests/tvm/cases

.PHONY: help demo test build bench-vm bench-vm-instructions bench-tvm bench-models format tidy install-deps clean

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

bench-vm: $(BENCH_VM) ## measure the interpreter loop (tests/bench); ARGS="--json FILE" keeps the figures
	$(BENCH_VM) $(ARGS)

bench-vm-instructions: $(BENCH_VM) ## count the loop's instructions with callgrind
	tests/bench/vm_instructions.py $(BENCH_VM)

bench-tvm: install-deps ## run TVM's files beside TVM's own VM (tests/tvm); ARGS="--only mlp" takes a part
	cmake --preset release -DREWIRE_BUILD_BENCH=ON
	cmake --build build/release --parallel $(JOBS) --target bench-tvm-peer rewire_ffi_shim
	tests/tvm/generate.py $(TVM_CASES)
	REWIRE_LIBRARY_PATH=build/release/lib/rewire \
	tests/bench/tvm_side_by_side.py build/release/tests/bin/bench-tvm-peer $(TVM_CASES) $(ARGS)

bench-models: build ## compare with ONNX Runtime on real models (tests/models); ARGS="--model NAME"
	tests/support/environments.py --run $(MODELS) tests/models/reference.py $(BUILD)/models
	tests/support/environments.py --run $(MODELS) tests/bench/models.py --bin $(BUILD)/bin --cases $(BUILD)/models $(ARGS)

# Ninja knows whether there is anything to do. Times are of the release build, whatever PRESET says.
.PHONY: $(BENCH_VM)
$(BENCH_VM): install-deps
	cmake --preset release -DREWIRE_BUILD_BENCH=ON
	cmake --build build/release --parallel $(JOBS) --target bench-vm

format: ## format all sources in place
	tests/ci/format.sh --fix

tidy: install-deps ## run clang-tidy on all sources
	tests/ci/tidy.py

install-deps: ## install the missing packages of third_party/packages.txt
	@third_party/install.sh

clean: ## remove all build trees
	rm -rf build
