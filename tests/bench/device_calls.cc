// SPDX-License-Identifier: Apache-2.0
// bench-device: what calls on devices cost, as ratios within one run.
//
//   bench-device opencl    enqueuing through the VM beside the driver's own function; a VM over much memory
//   bench-device cuda      also recordings and pipelines. With the simulated driver of tests/simulated_cuda
//   the
//                          work takes the time that is set here, so copies and work are equally long.
//   bench-device DEVICE --peaks [GB/S]
//                          instead, the rates of copies and products (device_peaks.h). GB/S is the peak of
//                          the link between host and device, which the driver does not tell
//
// Each figure is the median of 15 samples, with its quartiles.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "rewire/tests/bench/device_peaks.h"
#include "rewire/tests/bench/device_timing.h"
#include "rewire/tests/simulated_cuda/control.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/pipeline.h"
#include "rewire/vm/vm.h"

namespace rewire::bench {
namespace {

constexpr int kSamples = 15;
constexpr int kCalls = 200;  // kernel calls of a program, and driver calls beside them

// `kernels` times y = a + b over 16 floats on the device, between a copy in and a copy out.
std::string ChainText(const std::string& device, int kernels) {
  std::string text = "    .device gpu = " + device + ":0\n" + R"(
    .kernel rewire.device.add
    .func main(x: f32[16]) -> f32[16]
      %a = device_copy %x, cpu, gpu
      %s = alloc_storage _, alignment=64, f32[16], gpu
      %b = alloc_tensor %s, _, f32[16]
      %t = alloc_storage _, alignment=64, f32[16], gpu
      %c = alloc_tensor %t, _, f32[16]
      invoke_packed rewire.device.add(%a, %a, %b), outputs=1
)";
  for (int i = 1; i < kernels; ++i) {
    text += i % 2 == 1 ? "      invoke_packed rewire.device.add(%a, %b, %c), outputs=1\n"
                       : "      invoke_packed rewire.device.add(%a, %c, %b), outputs=1\n";
  }
  return text + fmt::format("      %h = device_copy {}, gpu, cpu\n      ret %h\n    .end\n",
                            kernels % 2 == 1 ? "%b" : "%c");
}

// --- the driver's own function, on a queue that waits at a gate so that no work disturbs the measurement ---

struct OpenCl {
  OpenCl() : library(dlopen("libOpenCL.so.1", RTLD_NOW)) {
    Check(library != nullptr, "opening libOpenCL.so.1");
  }
  template <typename Function>
  Function* Find(Function*, const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library, name));
  }
  void* library;
};
#define REWIRE_CL(name) auto* const own_##name = cl.Find(&name, #name)

void Enqueue(const DeviceApi& api) {
  const OpenCl cl;
  REWIRE_CL(clGetCommandQueueInfo);
  REWIRE_CL(clCreateUserEvent);
  REWIRE_CL(clSetUserEventStatus);
  REWIRE_CL(clReleaseEvent);
  REWIRE_CL(clEnqueueBarrierWithWaitList);
  REWIRE_CL(clCreateProgramWithSource);
  REWIRE_CL(clBuildProgram);
  REWIRE_CL(clCreateKernel);
  REWIRE_CL(clCreateBuffer);
  REWIRE_CL(clSetKernelArg);
  REWIRE_CL(clEnqueueNDRangeKernel);
  REWIRE_CL(clFinish);
  const DLDevice device{kDLOpenCL, 0};
  void* stream = nullptr;
  Check(api.make_stream(api.context, device, &stream) == REWIRE_DEVICE_OK, "making a stream");
  auto* queue = static_cast<cl_command_queue>(stream);
  cl_context context = nullptr;
  cl_device_id id = nullptr;
  own_clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, nullptr);
  own_clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(id), &id, nullptr);
  // The arguments of rewire.device.add: three buffers, the shape, the operation and the number of elements.
  // The driver copies values at each launch, so its own time depends on them.
  const char* source =
      "typedef struct Shape { int words[33]; } Shape;"
      "__kernel void add(__global float* a, __global float* b, __global float* c, Shape shape,"
      " int operation, int count) {"
      " int i = get_global_id(0); if (i < count) c[i] = a[i] + b[i] + shape.words[0]; }";
  cl_program program = own_clCreateProgramWithSource(context, 1, &source, nullptr, nullptr);
  Check(own_clBuildProgram(program, 1, &id, "", nullptr, nullptr) == CL_SUCCESS, "clBuildProgram");
  cl_kernel kernel = own_clCreateKernel(program, "add", nullptr);
  for (cl_uint i = 0; i < 3; ++i) {
    cl_mem memory = own_clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, nullptr, nullptr);
    own_clSetKernelArg(kernel, i, sizeof(memory), &memory);
  }
  const cl_int shape[33] = {};
  const cl_int number = 16;
  own_clSetKernelArg(kernel, 3, sizeof(shape), shape);
  own_clSetKernelArg(kernel, 4, sizeof(number), &number);
  own_clSetKernelArg(kernel, 5, sizeof(number), &number);
  // All that comes later in the queue waits until `body` has been timed.
  const auto behind_gate = [&](const auto& body) {
    cl_event gate = own_clCreateUserEvent(context, nullptr);
    cl_event passed = nullptr;
    own_clEnqueueBarrierWithWaitList(queue, 1, &gate, &passed);
    const double time = Timed(body);
    own_clSetUserEventStatus(gate, CL_COMPLETE);
    own_clFinish(queue);
    own_clReleaseEvent(passed);
    own_clReleaseEvent(gate);
    return time;
  };
  const std::size_t global[3] = {64, 1, 1};
  const auto driver = [&] {
    for (int i = 0; i < kCalls; ++i) {
      own_clEnqueueNDRangeKernel(queue, kernel, 3, nullptr, global, global, 0, nullptr, nullptr);
    }
  };
  VirtualMachine many(ProgramOf(ChainText("opencl", kCalls + 1)));
  VirtualMachine one(ProgramOf(ChainText("opencl", 1)));
  float x[16] = {};
  for (VirtualMachine* vm : {&many, &one}) {
    vm->SetInput("x", TensorView(x, {16}));
    Done(vm->TrySetStream(device, stream));
    vm->Invoke();
  }
  std::vector<double> direct;
  std::vector<double> ours;
  for (int i = 0; i < kSamples + 3; ++i) {
    const double driver_time = behind_gate(driver) / kCalls;
    const double base = behind_gate([&] { one.InvokeAsync(); });
    one.Wait();
    const double whole = behind_gate([&] { many.InvokeAsync(); });
    many.Wait();
    if (i < 3) continue;
    direct.push_back(driver_time);
    ours.push_back((whole - base) / kCalls);
  }
  const Summary theirs = Summarize(direct);
  const Summary vm = Summarize(ours);
  fmt::print("clEnqueueNDRangeKernel of such a kernel, its arguments set before: {}\n",
             Text(theirs, 1, "ns"));
  fmt::print("a kernel call of 3 tensors through the VM: {}\n", Text(vm, 1, "ns"));
  fmt::print("  the limit of 1.3 times the driver's and 50 ns: {:.0f} ns, {}\n", theirs.median * 1.3 + 50,
             vm.median <= theirs.median * 1.3 + 50 ? "kept" : "exceeded");
}

// --- a VM over a device program with a gigabyte of weights ---

void MachinesOverWeights(const DeviceApi& api, const std::string& name) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 30;
  const Tensor weights = Taken(Tensor::Make(kUInt8, {kBytes}));
  ParameterSet set;
  set.Set("w", weights);
  LinkOptions options;
  options.parameters.push_back(set);
  const Program program = Taken(
      Program::Link(Taken(Executable::FromModule(Taken(Assemble("    .device gpu = " + name + ":0\n" + R"(
    .param w: u8[1073741824] on gpu
    .func main() -> u8[1073741824] on gpu
      %w = load_const w
      ret %w
    .end)")))),
                    options));
  VirtualMachine(program).Invoke();
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  std::uint64_t all = 0;
  const DLDevice device{static_cast<DLDeviceType>(api.device_type), 0};
  const bool counts = api.memory != nullptr;
  if (counts) api.memory(api.context, device, &before, &all);
  std::vector<VirtualMachine> machines;
  machines.reserve(1000);
  std::vector<double> times;
  times.reserve(1000);
  for (int i = 0; i < 1000; ++i) times.push_back(Timed([&] { machines.emplace_back(program); }));
  if (counts) api.memory(api.context, device, &after, &all);
  fmt::print("a VM over a Program with a gigabyte of weights on {}: {}; device memory of 1,000 of them: {}\n",
             name, Text(Summarize(times), 1000, "us"),
             counts ? fmt::format("{} B", before - after) : "not told");
}

// --- recordings ---

void Replays(const std::string& name) {
  VirtualMachine plain(ProgramOf(ChainText(name, kCalls)));
  VirtualMachine recorded(ProgramOf(ChainText(name, kCalls)));
  float x[16] = {};
  float y[16] = {};
  for (VirtualMachine* vm : {&plain, &recorded}) {
    vm->SetInput("x", TensorView(x, {16}));
    vm->SetOutput(0, TensorView(y, {16}));
    vm->Invoke();
  }
  if (const Status made = recorded.TryRecord(); !made) {
    fmt::print("no recording: {}\n", made.error().message());
    return;
  }
  std::vector<double> enqueued;
  std::vector<double> replayed;
  for (int i = 0; i < kSamples; ++i) {
    enqueued.push_back(Timed([&] { plain.InvokeAsync(); }));
    plain.Wait();
    replayed.push_back(Timed([&] { recorded.InvokeAsync(); }));
    recorded.Wait();
  }
  const Summary a = Summarize(enqueued);
  const Summary b = Summarize(replayed);
  fmt::print("a program of {} kernels, enqueued: {}; replayed: {}; ratio {:.3f} (limit 0.5)\n", kCalls,
             Text(a, 1000, "us"), Text(b, 1000, "us"), b.median / a.median);
}

// --- pipelines ---

void Pipelines(const DeviceApi& api, const std::string& name) {
  simulated_cuda::Control control;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr || !control.Load([&](const char* symbol) { return dlsym(driver, symbol); })) {
    fmt::print("no pipeline: copies and work are equally long only with the simulated driver\n");
    return;
  }
  constexpr std::uint64_t kPart = 2'000'000;  // nanoseconds of a copy in, of the work, and of a copy out
  constexpr int kRuns = 30;
  const Program program = ProgramOf(ChainText(name, 1));
  const DLDevice device{kDLCUDA, 0};
  // Only memory that is pinned is copied while the host goes on.
  std::vector<Tensor> xs;
  std::vector<float*> ys;
  for (int i = 0; i < 4; ++i) {
    void* pinned[2] = {};
    for (void*& each : pinned) {
      Check(api.allocate_host(api.context, device, 64, &each) == REWIRE_DEVICE_OK, "pinned memory");
      std::memset(each, 0, 64);
    }
    xs.push_back(Taken(Tensor::Wrap(TensorView(static_cast<float*>(pinned[0]), {16}), nullptr)));
    ys.push_back(static_cast<float*>(pinned[1]));
  }
  VirtualMachine(program).Invoke("main", std::vector<Value>{xs[0]});  // compiles
  control.SetCosts(kPart, kPart, 0);
  control.SetRealTime(1);
  std::vector<double> serial;
  std::vector<double> overlapped;
  for (int sample = 0; sample < kSamples; ++sample) {
    VirtualMachine vm(program);
    serial.push_back(Timed([&] {
                       for (int i = 0; i < kRuns; ++i) {
                         const std::vector<Value> inputs{xs[0]};
                         const OutputBinding output{0, TensorView(ys[0], {16})};
                         vm.Invoke("main", inputs, {&output, 1});
                       }
                     }) /
                     kRuns);
    Pipeline pipeline = Taken(Pipeline::TryMake(program, 3));
    overlapped.push_back(
        Timed([&] {
          for (int i = 0; i < kRuns; ++i) {
            if (pipeline.size() == pipeline.depth()) Taken(pipeline.TryPop());
            const Value input = xs[static_cast<std::size_t>(i % 4)];
            const OutputBinding output{0, TensorView(ys[static_cast<std::size_t>(i % 4)], {16})};
            Done(pipeline.TryPush({&input, 1}, {&output, 1}));
          }
          while (pipeline.size() > 0) Taken(pipeline.TryPop());
        }) /
        kRuns);
  }
  const Summary a = Summarize(serial);
  const Summary b = Summarize(overlapped);
  fmt::print("calls one after another: {}; in a pipeline of depth 3: {}; ratio {:.3f} (limit 0.45)\n",
             Text(a, 1e6, "ms"), Text(b, 1e6, "ms"), b.median / a.median);
}

void Run(const std::string& name, bool peaks, double pcie) {
  const DeviceApi& api = *Taken(OpenDevice(name));
  RewireDeviceProperties is{};
  is.struct_size = sizeof(is);
  if (api.properties != nullptr) api.properties(api.context, 0, &is);
  fmt::print("device {}:0: {}, {}\n", name, is.name, is.driver);
  if (peaks) return MeasurePeaks(api, name, pcie);
  if (name == "opencl") Enqueue(api);
  MachinesOverWeights(api, name);
  Replays(name);
  Pipelines(api, name);
}

}  // namespace
}  // namespace rewire::bench

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const bool peaks = argc > 2 && std::strcmp(argv[2], "--peaks") == 0;
  if ((name != "opencl" && name != "cuda") || argc > (peaks ? 4 : 2)) {
    fmt::print(stderr, "usage: bench-device opencl|cuda [--peaks [GB/S]]\n");
    return 2;
  }
  rewire::bench::Run(name, peaks, argc > 3 ? std::strtod(argv[3], nullptr) : 0);
  return 0;
}
