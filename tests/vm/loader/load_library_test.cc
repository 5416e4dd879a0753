// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/load_library.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "rewire/tests/support/paths.h"
#include "rewire/tests/vm/loader/run_kernel.h"

namespace rewire {
namespace {

using test::TestLibrary;

Error Refusal(const std::string& library) {
  KernelSet kernels;
  const Status status = kernels.AddLibrary(library);
  return status ? Error(StatusCode::kOk, "loaded") : status.error();
}

// A folder for one test.
struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "rewire-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

TEST_CASE("a missing library is reported with every place tried") {
  const Error absolute = Refusal("/nowhere/kernels.so");
  CHECK(absolute.code() == StatusCode::kNotFound);
  CHECK(absolute.message() == "kernel library '/nowhere/kernels.so': no such file");

  KernelSet kernels;
  kernels.library_path = {"/first", "/second"};
  const Status status = kernels.AddLibrary("no_such_kernels.so");
  REQUIRE_FALSE(status);
  CHECK(status.error().code() == StatusCode::kNotFound);
  const std::string build = test::BuildDir();
  CHECK(status.error().message() ==
        "kernel library 'no_such_kernels.so' was not found; tried /first/no_such_kernels.so, "
        "/second/no_such_kernels.so, " +
            build + "/lib/rewire/no_such_kernels.so, " + build + "/tests/bin/rewire/no_such_kernels.so, " +
            build +
            "/tests/bin/../lib/rewire/no_such_kernels.so, and the system's libraries (no_such_kernels.so: "
            "cannot "
            "open shared object file: No such file or directory)");
}

TEST_CASE("a name without a slash is found in the set's directories, first one first") {
  Folder folder;
  std::filesystem::create_symlink(TestLibrary("plain"), folder.path + "/mine.so");
  KernelSet kernels;
  kernels.library_path = {"/nowhere", folder.path, std::string(test::BuildDir()) + "/tests/libraries"};
  REQUIRE(kernels.AddLibrary("mine.so"));
  CHECK(kernels.sources().back()->Description() == "plain.so (tvm-ffi ABI)");
  REQUIRE(kernels.AddLibrary("plain.so"));
  CHECK(kernels.sources()[0] == kernels.sources()[1]);  // one file, one library
}

TEST_CASE("what is no kernel library is refused before its code runs, and says what it is") {
  Folder folder;
  const std::string text = folder.path + "/text.so";
  std::ofstream(text) << "int main() {}\n";
  CHECK(Refusal(text).code() == StatusCode::kInvalidFile);
  CHECK(Refusal(text).message() ==
        "kernel library '" + text +
            "': not a shared library: it does not begin as an ELF file does; link one with -shared");
  CHECK(Refusal(folder.path).code() == StatusCode::kIo);

  const std::string archive = folder.path + "/model.tar";
  std::ofstream(archive) << std::string(257, 'x') + "ustar" + std::string(250, 'x');
  CHECK(Refusal(archive).code() == StatusCode::kUnsupported);
  CHECK(Refusal(archive).message() == "kernel library '" + archive +
                                          "': this is a tar archive of object files, which nothing here can "
                                          "link; unpack it and make a shared "
                                          "library of them: tar -xf model.tar && cc -shared -o model.so *.o");

  std::ofstream(archive) << "\x1f\x8b\x08\x01";
  CHECK(Refusal(archive).message() == "kernel library '" + archive +
                                          "': this is compressed by gzip, as TVM compresses its tar archives "
                                          "of object files, which nothing here "
                                          "can link; unpack it and make a shared library of them: tar -xf "
                                          "model.tar && cc -shared -o model.so *.o");

  const auto refused = [](const std::string& name, const std::string& reason) {
    const Error error = Refusal(TestLibrary(name));
    CHECK(error.code() == StatusCode::kUnsupported);
    CHECK(error.message() == "kernel library '" + TestLibrary(name) + "': " + reason);
  };
  refused("abi_021",
          "it speaks the tvm-ffi ABI of TVM 0.21 (it has __tvm_ffi_library_ctx), whose type numbers differ "
          "from all "
          "later ones; build it with TVM 0.22 or later");
  refused(
      "no_kernels",
      "it exports no kernels: neither __rewire_kernel_table, nor a function __tvm_ffi_<name>, nor any other "
      "function whose name does not begin with an underscore");
  refused(
      "modules",
      "it carries modules of the kind 'metal' (7 bytes), for which there is no loader; build it for the CPU, "
      "OpenCL or CUDA, without external code generators");
  refused("rows_short", "its __rewire_kernel_table has 8 bytes, expected at least 16");
  for (const char* library : {"calls_back", "classic_calls_back"})
    refused(library, "it calls back the function TVMFunctionOfNobody, which is not provided");
  refused(
      "undefined_unknown",
      "it calls the function TVMFFINoSuchFunction, which the tvm-ffi runtime of this process does not have");
}

TEST_CASE("a library that exports nothing is one without kernels") {
  KernelSet kernels;
  REQUIRE(kernels.AddLibrary(TestLibrary("empty")));
  CHECK(kernels.sources()[0]->Names().empty());
  KernelImport import;
  import.name = "add";
  CHECK(test::MessageOf(kernels.Resolve(import)) == "kernel 'add' is not in: empty.so (exports nothing)");
}

TEST_CASE("a library that registers its functions when it is loaded is one like others") {
  KernelSet kernels;
  const Status added = kernels.AddLibrary(TestLibrary("system_library"));
  INFO(test::MessageOf(added));
  REQUIRE(added);
  CHECK(test::RunKernel(kernels, "answer", {}) == 42);
}

TEST_CASE("a library is loaded once and unloaded with its last user") {
  KernelImport import;
  import.name = "plain_add";
  PackedFunction function;
  std::weak_ptr<const KernelSource> watch;
  {
    KernelSet first, second;
    REQUIRE(first.AddLibrary(TestLibrary("plain")));
    REQUIRE(second.AddLibrary(TestLibrary("../libraries/plain")));
    CHECK(first.sources()[0] == second.sources()[0]);
    watch = first.sources()[0];
    function = *first.Resolve(import);
  }
  CHECK_FALSE(watch.expired());
  RewireFFIAny args[2] = {}, result{};
  args[0].v_int64 = 1;
  args[1].v_int64 = 2;
  CHECK(function.call(function.handle, args, 2, &result) == 0);
  CHECK(result.v_int64 == 1003);
  function = {};
  CHECK(watch.expired());
}

TEST_CASE("a file that is replaced while it is loaded is not taken for the new one") {
  Folder folder;
  const std::string path = folder.path + "/kernels.so";
  std::filesystem::copy_file(TestLibrary("plain"), path);
  {
    KernelSet kernels;
    REQUIRE(kernels.AddLibrary(path));
    std::filesystem::rename(path, folder.path + "/old.so");  // keeps its inode in use
    std::filesystem::copy_file(TestLibrary("throwing"), path);
    const Error error = Refusal(path);
    CHECK(error.code() == StatusCode::kBusy);
    CHECK(error.message() ==
          "kernel library '" + path +
              "': the file was replaced while its former content is loaded; release the kernel "
              "sets and programs that use it first");
  }
  KernelSet kernels;
  REQUIRE(kernels.AddLibrary(path));
  CHECK(kernels.sources()[0]->Names() == std::vector<std::string>{"cpp.made", "cpp.throws"});
}

TEST_CASE("threads load, resolve and release libraries at once") {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&wrong, t] {
      for (int i = 0; i < 50; ++i) {
        KernelSet kernels;
        if (!kernels.AddLibrary(TestLibrary(t % 2 == 0 ? "plain" : "throwing"))) ++wrong;
        if (!kernels.AddLibrary(TestLibrary("contexts"))) ++wrong;
        KernelImport import;
        import.name = t % 2 == 0 ? "plain_add" : "cpp.made";
        const Result<PackedFunction> function = kernels.Resolve(import);
        RewireFFIAny args[2] = {}, result{};
        for (RewireFFIAny& arg : args) {
          arg.type_index = kRewireFFIInt;
          arg.v_int64 = i;
        }
        const bool called =
            function && function->call(function->handle, args, t % 2 == 0 ? 2 : 1, &result) == 0;
        if (!called || result.v_int64 != (t % 2 == 0 ? 1000 + 2 * i : i)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace rewire
