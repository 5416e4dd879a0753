# SPDX-License-Identifier: Apache-2.0
# The everyday commands. The build itself is CMake's (CMakePresets.json); this file only names what people do often.

JOBS ?= $(shell nproc)
PRESET ?= release
PREFIX ?= /usr/local
PYTHONS ?= python3
RANKS ?= 2
BUILD := build/$(PRESET)
BENCH_VM := build/release/tests/bin/bench-vm
MODELS := tests/models/requirements/models.txt
RECOGNIZER := tests/onnxruntime_api/requirements/recognizer.txt
PUBLISHED := tests/onnxruntime_api/requirements/published.txt
OPENVINO := tests/models/requirements/openvino.txt
PYTHON := tests/python/requirements/python.txt
TRITON := tests/integrations/requirements/triton.txt
TVM_CASES := build/release/tests/tvm/cases

# ccache where it is installed; what the user has set wins. An empty launcher means none to CMake.
LAUNCHERS := CMAKE_C_COMPILER_LAUNCHER="$${CMAKE_C_COMPILER_LAUNCHER-$$(command -v ccache)}" \
	CMAKE_CXX_COMPILER_LAUNCHER="$${CMAKE_CXX_COMPILER_LAUNCHER-$$(command -v ccache)}"

.PHONY: help demo demo-serve test build install wheel dist packages bench-device bench-vm bench-vm-instructions bench-tvm bench-models bench-operators bench-aot bench-aot-board bench-collective bench-collective-cpu bench-onnxruntime-api bench-python bench-serve-batches bench-serve-cpu bench-serve-k6 bench-serve-loadgen bench-serve-mlp bench-serve-models bench-serve-prefixes bench-serve-sandbox bench-serve-triton test-faults docs format tidy install-deps clean

help: ## print this list
	@echo "Rewire: a bytecode VM that runs compiled ML models inside a C++ program."
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22
	@echo
	@echo "Variables: JOBS (now $(JOBS)), PRESET (now $(PRESET); see cmake --list-presets), PREFIX (now $(PREFIX)),"
	@echo "PYTHONS (now $(PYTHONS))."

# Builds little, in build/demo; `make test` builds everything, in build/release.
demo: ## recognize the handwritten digits of examples/digits
	@echo "== 1 of 3: packages that are missing"
	@third_party/install.sh build libraries
	@echo "== 2 of 3: the runtime, two tools and the model, compiled into build/demo (some minutes of one core)"
	@$(LAUNCHERS) cmake --preset demo --log-level=WARNING
	@cmake --build --preset demo --parallel $(JOBS)
	@echo "== 3 of 3: the model on images that it has never seen"
	@examples/digits/demo.sh build/demo

demo-serve: ## serve the model of examples/digits, and ask it with curl
	@third_party/install.sh build libraries
	@$(LAUNCHERS) cmake --preset demo --log-level=WARNING
	@cmake --build --preset demo --parallel $(JOBS) --target digits vm-serve
	@examples/digits/serve.sh build/demo

test: build ## build everything and run all tests
	ctest --preset $(PRESET) --parallel $(JOBS)

build: install-deps ## configure and build, after installing what is missing
	$(LAUNCHERS) cmake --preset $(PRESET)
	cmake --build $(BUILD) --parallel $(JOBS)

install: ## install what `make build` has built, into PREFIX
	cmake --install $(BUILD) --prefix $(PREFIX)

wheel: install-deps ## make Python wheels in dist, for PYTHONS (packaging/wheels.py)
	$(LAUNCHERS) packaging/wheels.py --jobs $(JOBS) $(PYTHONS)

dist: install-deps ## make a release in dist: wheels, sources, Debian packages, a bill of materials and checksums
	$(LAUNCHERS) JOBS=$(JOBS) packaging/dist.sh $(PYTHONS)

packages: install-deps ## make Debian packages in build/packages/packages (packaging/README.md)
	$(LAUNCHERS) cmake --preset packages
	cmake --build --preset packages --parallel $(JOBS)

bench-vm: $(BENCH_VM) ## measure the interpreter loop (tests/bench); ARGS="--json FILE" keeps the figures
	$(BENCH_VM) $(ARGS)

bench-vm-instructions: $(BENCH_VM) ## count the loop's instructions with callgrind
	tests/bench/vm_instructions.py $(BENCH_VM)

bench-device: install-deps ## measure calls on devices (docs/results/device-calls.md): OpenCL, and the simulated CUDA driver
	$(LAUNCHERS) cmake --preset $(PRESET) -DREWIRE_BUILD_BENCH=ON
	cmake --build $(BUILD) --parallel $(JOBS) --target bench-device rewire_device_cuda rewire_simulated_cuda rewire_simulated_nvrtc_13
	REWIRE_LIBRARY_PATH=$(BUILD)/lib/rewire $(BUILD)/tests/bin/bench-device opencl
	REWIRE_LIBRARY_PATH=$(BUILD)/lib/rewire LD_LIBRARY_PATH=$(BUILD)/tests/simulated_cuda \
	  $(BUILD)/tests/bin/bench-device cuda

bench-tvm: install-deps ## run TVM's files beside TVM's own VM (tests/tvm); ARGS="--only mlp" takes a part
	cmake --preset release -DREWIRE_BUILD_BENCH=ON
	cmake --build build/release --parallel $(JOBS) --target bench-tvm-peer rewire_ffi_shim rewire_tvm_runtime
	tests/tvm/generate.py $(TVM_CASES)
	REWIRE_LIBRARY_PATH=build/release/lib/rewire \
	tests/bench/tvm_side_by_side.py build/release/tests/bin/bench-tvm-peer $(TVM_CASES) $(ARGS)

bench-models: build ## compare with ONNX Runtime and OpenVINO on real models (tests/models); ARGS="--model NAME"
	cmake --preset $(PRESET) -DREWIRE_BUILD_BENCH=ON
	cmake --build $(BUILD) --parallel $(JOBS) --target bench-peer
	tests/support/environments.py $(OPENVINO)
	tests/support/environments.py --run $(MODELS) tests/models/reference.py $(BUILD)/models
	tests/support/environments.py --run $(MODELS) tests/bench/models.py --bin $(BUILD)/bin \
	  --peer $(BUILD)/tests/bin/bench-peer --openvino --cases $(BUILD)/models $(ARGS)

bench-operators: install-deps ## compare operators one by one with ONNX Runtime and OpenVINO (tests/bench/operators); ARGS="--only MaxPool"
	$(LAUNCHERS) cmake --preset release -DREWIRE_BUILD_BENCH=ON
	cmake --build build/release --parallel $(JOBS) --target bench-operators rewire_kernels_cpu
	tests/support/environments.py $(OPENVINO)
	tests/support/environments.py --run $(MODELS) tests/bench/operators/main.py --bin build/release/tests/bin $(ARGS)

bench-aot: install-deps ## compare C source of vm-aot with the VM and with emx-onnx-cgen; ARGS="--only digits"
	tests/support/environments.py tests/bench/requirements/aot.txt
	$(LAUNCHERS) cmake --preset release -DREWIRE_BUILD_BENCH=ON
	cmake --build build/release --parallel $(JOBS) --target bench-aot vm-as vm-aot vm-compile rewire_kernels_cpu
	tests/support/environments.py --run tests/bench/requirements/aot.txt tests/bench/aot.py --build build/release $(ARGS)

bench-aot-board: install-deps ## compare digits as C source on an emulated Cortex-M4 with emx-onnx-cgen and BakeNN
	third_party/install.sh boards
	tests/support/environments.py tests/bench/requirements/aot.txt
	$(LAUNCHERS) cmake --preset release
	cmake --build build/release --parallel $(JOBS) --target vm-aot vm-compile rewire_kernels_cpu
	tests/support/environments.py --run tests/bench/requirements/aot.txt tests/bench/aot_board.py --build build/release

bench-collective: install-deps ## compare all-reduce with MPI's own; RANKS=4, ARGS="--rounds 31"
	third_party/install.sh mpi
	$(LAUNCHERS) cmake --preset release -DREWIRE_BUILD_BENCH=ON
	cmake --build build/release --parallel $(JOBS) --target bench-collective
	REWIRE_LIBRARY_PATH=build/release/lib/rewire mpirun --allow-run-as-root --oversubscribe --bind-to none -n $(RANKS) \
	  build/release/tests/bin/bench-collective $(ARGS)

bench-collective-cpu: install-deps ## compare a rank's time for its part of a model with one process's time for the whole; ARGS="--ranks 4"
	third_party/install.sh mpi
	tests/support/environments.py $(MODELS)
	$(LAUNCHERS) cmake --preset release
	cmake --build build/release --parallel $(JOBS) --target vm-compile vm-run rewire_kernels_cpu rewire_kernels_collective_mpi
	tests/support/environments.py --run $(MODELS) tests/bench/collective/rank_cpu.py build/release $(ARGS)

bench-onnxruntime-api: install-deps ## measure sessions of programs for ONNX Runtime's C interface, on its library and on ours
	tests/support/environments.py $(MODELS)
	tests/support/environments.py $(RECOGNIZER)
	tests/support/environments.py $(PUBLISHED)
	$(LAUNCHERS) cmake --preset release -DREWIRE_BUILD_BENCH=ON
	cmake --build build/release --parallel $(JOBS) --target bench-onnxruntime-api
	tests/support/environments.py --run $(MODELS) tests/bench/onnxruntime_api.py --build build/release \
	  --recognizer "$$(tests/support/environments.py --python $(RECOGNIZER))" \
	  --sherpa "$$(tests/support/environments.py --python $(PUBLISHED))" $(ARGS)

bench-serve-triton: install-deps ## measure vm-serve beside Triton's server with an empty backend, and our backend in it; ARGS="--rounds 5"
	third_party/install.sh load
	tests/support/environments.py $(TRITON)
	$(LAUNCHERS) cmake --preset release -DREWIRE_BUILD_BENCH=ON -DREWIRE_WITH_TRITON=ON
	cmake --build build/release --parallel $(JOBS) --target vm-as vm-bench vm-serve triton_empty triton_timed triton_rewire rewire_kernels_cpu
	tests/support/environments.py --run $(TRITON) tests/bench/serve_beside_triton.py build/release $(ARGS)

bench-serve-cpu: install-deps ## measure the server's CPU time for a request over HTTP, gRPC and shared memory; ARGS="--clients 1,64"
	third_party/install.sh load
	tests/support/environments.py tests/serve/requirements/openai.txt
	$(LAUNCHERS) cmake --preset release
	cmake --build build/release --parallel $(JOBS) --target vm-as vm-serve rewire_kernels_cpu
	tests/support/environments.py --run tests/serve/requirements/openai.txt tests/bench/serve_cpu.py build/release $(ARGS)

bench-serve-models: install-deps ## measure batching on and off for each model of tests/models; ARGS="--model mlp"
	tests/support/environments.py $(MODELS)
	$(LAUNCHERS) cmake --preset release
	cmake --build build/release --parallel $(JOBS) --target vm-bench vm-compile vm-serve rewire_kernels_cpu
	tests/support/environments.py --run $(MODELS) tests/models/reference.py $(BUILD)/models
	tests/support/environments.py --run $(MODELS) tests/bench/serve_models.py build/release --cases $(BUILD)/models $(ARGS)

bench-serve-loadgen: install-deps ## let MLPerf's LoadGen judge vm-serve in its Server scenario; ARGS="--rate 2000"
	tests/support/environments.py tests/bench/requirements/loadgen.txt
	$(LAUNCHERS) cmake --preset release
	cmake --build build/release --parallel $(JOBS) --target vm-as vm-serve rewire_kernels_cpu
	tests/support/environments.py --run tests/bench/requirements/loadgen.txt tests/bench/loadgen_server.py build/release $(ARGS)

bench-serve-mlp: install-deps ## measure what batches of 32 clients give, beside direct runs and batching off; ARGS="--rounds 5"
	tests/support/environments.py tests/serve/requirements/openai.txt
	$(LAUNCHERS) cmake --preset release
	cmake --build build/release --parallel $(JOBS) --target vm-bench vm-compile vm-serve rewire_kernels_cpu
	tests/support/environments.py --run tests/serve/requirements/openai.txt tests/bench/serve_batching.py build/release $(ARGS)

bench-serve-prefixes: install-deps ## measure what prompts that begin alike save; ARGS="--rounds 5"
	tests/support/environments.py tests/serve/requirements/openai.txt
	$(LAUNCHERS) cmake --preset release
	cmake --build build/release --parallel $(JOBS) --target vm-serve rewire_kernels_cpu
	tests/support/environments.py --run tests/serve/requirements/openai.txt tests/bench/decoder_prefixes.py build/release $(ARGS)

bench-serve-sandbox: install-deps ## measure what a sandbox costs; ARGS="--rounds 5"
	tests/support/environments.py tests/serve/requirements/openai.txt
	$(LAUNCHERS) cmake --preset release
	cmake --build build/release --parallel $(JOBS) --target vm-as vm-bench vm-serve rewire_kernels_cpu
	tests/support/environments.py --run tests/serve/requirements/openai.txt tests/bench/serve_sandbox.py build/release $(ARGS)

bench-serve-k6: install-deps ## let k6 judge vm-serve as an open loop over HTTP; ARGS="--rate 1000"
	tests/support/environments.py tests/bench/requirements/k6.txt
	$(LAUNCHERS) cmake --preset release
	cmake --build build/release --parallel $(JOBS) --target vm-as vm-serve rewire_kernels_cpu
	tests/support/environments.py --run tests/bench/requirements/k6.txt tests/bench/k6_server.py build/release $(ARGS)

bench-serve-batches: install-deps ## measure tokens a second of a served decoder, with one client and with eight; ARGS="--rounds 5"
	tests/support/environments.py tests/serve/requirements/openai.txt
	$(LAUNCHERS) cmake --preset release
	cmake --build build/release --parallel $(JOBS) --target vm-serve rewire_kernels_cpu
	tests/support/environments.py --run tests/serve/requirements/openai.txt tests/bench/decoder_batches.py build/release $(ARGS)

bench-python: install-deps ## measure what a call from Python costs, beside ONNX Runtime
	tests/support/environments.py $(PYTHON)
	$(LAUNCHERS) cmake --preset release -DREWIRE_WITH_PYTHON=ON -DREWIRE_PYTHON="$$(tests/support/environments.py --python $(PYTHON))"
	cmake --build build/release --parallel $(JOBS) --target rewire_wheel
	PYTHONPATH=build/release/python:tests/python tests/support/environments.py --run $(PYTHON) tests/bench/python_calls.py
	cmake --preset release -DREWIRE_WITH_PYTHON=OFF >/dev/null  # `make test` goes without

# Ninja knows whether there is anything to do. Times are of the release build, whatever PRESET says.
.PHONY: $(BENCH_VM)
$(BENCH_VM): install-deps
	cmake --preset release -DREWIRE_BUILD_BENCH=ON
	cmake --build build/release --parallel $(JOBS) --target bench-vm

test-faults: install-deps ## plant faults in the library one by one: the tests must notice each (tests/faults)
	tests/faults/plant.py $(ARGS)

docs: ## make the reference of the C++, C and Python interfaces in build/reference (docs/reference)
	@third_party/install.sh reference
	docs/reference/build.py

format: ## format all sources in place
	tests/ci/format.sh --fix

tidy: install-deps ## run clang-tidy on all sources
	tests/ci/tidy.py

install-deps: ## install the missing packages of third_party/packages.txt
	@third_party/install.sh

clean: ## remove all build trees
	rm -rf build
