#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has vm-run load the kernel libraries of every TVM into one process and call them from one program.

    run_kernels.py BIN CASES

BIN has vm-run, CASES is what generate.py has filled. It runs with Rewire's own tvm-ffi runtime alone, with tvm-ffi's
real one loaded before it, and with the real one loaded after it. Each time every kernel gives what it should in one
run, and each kernel, called with integers in place of floats, fails with its own message. Then vm-inspect shows what
each library says of itself, and a Relax executable is refused as a model. Prints failures and the totals; exits with 1 when something failed.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import environments  # noqa: E402  (after the path is set)

CASES = {"tvm-0.25": {"compiled", "opencl"}, "tvm-ffi": {"compiled", "opencl", "relax", "cpp", "documented"}}  # of the others: classic
DOCUMENTED = "documented"  # has the kernel of `cpp` again
KERNEL_FAILED, UNSUPPORTED = 10 + 9, 10 + 5  # vm-run's exit codes
RELAX = (
    "this is a Relax executable of a current TVM; only Relay VM executables (TVM 0.8 to 0.19) are read. Compile the model "
    "from its source with vm-compile; kernels that TVM compiles can be used as they are"
)
SCHEMA = (
    r'{"type_schema":"{\"type\":\"ffi.Function\",\"named_args\":{\"return\":[{\"type\":\"None\"}],'
    r'\"params\":[{\"type\":\"DLTensor*\"},{\"type\":\"DLTensor*\"}]}}"}'
)


class Kernel:
    def __init__(self, directory, entry, device):
        self.device = device
        self.name = entry["name"]
        self.inputs = [directory / file for file in entry["inputs"]]
        self.expected = directory / entry["expected"]
        self.shapes = entry["shapes"]
        self.is_example = directory.name == "cpp"

    def call(self, out):
        """Instructions that leave the result of a call with inputs x0, x1, ... in %out."""
        kind = f"f32[{', '.join(map(str, self.shapes[-1]))}]"
        arguments = ", ".join(f"%{name}" for name in [*self.parameters(), out])
        return (
            f"  %storage = alloc_storage _, alignment=128, {kind}, {self.device}\n  %{out} = alloc_tensor %storage, _, {kind}\n"
            f'  invoke_packed "{self.name}"({arguments}), outputs=1\n'
        )

    def parameters(self):
        return [f"{self.name}.{i}" for i in range(len(self.inputs))]

    def signature(self):
        place = "" if self.device == "cpu" else f" on {self.device}"
        return ", ".join(f"{name}: ?[*]{place}" for name in self.parameters())

    def message(self):
        """What the kernel says when it is called with integers."""
        return "x must be a float tensor" if self.is_example else "float32"


def program(kernels):
    """`main` calls all kernels, and a function of each kernel's name that one."""
    text = "".join(f'.kernel "{each.name}" align=128\n' for each in kernels)
    text += f".func main({', '.join(each.signature() for each in kernels)}) -> value\n"
    text += "".join(each.call(f"out{i}") for i, each in enumerate(kernels))
    text += f"  %all = alloc_adt tag=0 ({', '.join(f'%out{i}' for i in range(len(kernels)))})\n  ret %all\n.end\n"
    for each in kernels:
        text += f".func {each.name}({each.signature()}) -> value\n{each.call('out')}  ret %out\n.end\n"
    return text


def has_device(tools, device):
    """Whether kernels can run there. Says so where they cannot."""
    listed = subprocess.run([tools / "vm-run", "--devices"], capture_output=True, text=True, check=False).stdout
    if device == "cpu" or device in listed:
        return True
    print(f"skipped: the kernels of a library for {device}, which is not there")
    return False


def real_runtime():
    """The libtvm_ffi.so of the environment that made the C++ example."""
    environment = environments.environment(HERE / "requirements" / "tvm-ffi.txt")
    return next(environment.glob("lib/python*/site-packages/tvm_ffi/lib/libtvm_ffi.so"))


class Session:
    def __init__(self, tools, folder, kernels, libraries):
        self.kernels = kernels
        self.asm = pathlib.Path(folder) / "all.asm"
        self.asm.write_text(program(kernels))
        self.command = [tools / "vm-run", self.asm, "--threads", "3"]
        for library in libraries:
            self.command += ["--kernels", library]

    def run(self, arguments, preload):
        environment = dict(os.environ, LD_PRELOAD=":".join(map(str, preload)))
        return subprocess.run([*self.command, *arguments], capture_output=True, text=True, check=False, env=environment)

    def failures(self, preload):
        inputs, expected = [], []
        for kernel in self.kernels:
            for name, file in zip(kernel.parameters(), kernel.inputs):
                inputs += ["--input", f"{name}=@{file}"]
            expected.append(f"@{kernel.expected}")
        done = self.run([*inputs, "--expect", f"output0=({','.join(expected)})", "--rtol", "1e-6"], preload)
        if done.returncode != 0 or done.stderr:
            yield f"main: exit status {done.returncode}: {done.stdout}{done.stderr}"
        for kernel in self.kernels:
            arguments = ["--function", kernel.name]
            for name, shape in zip(kernel.parameters(), kernel.shapes):
                arguments += ["--input", f"{name}={'x'.join(map(str, shape))}xi32=1"]
            done = self.run(arguments, preload)
            said = kernel.message() in done.stderr and f"{kernel.name}@" in done.stderr
            if done.returncode != KERNEL_FAILED or not said:
                yield f"{kernel.name} with integers: exit status {done.returncode}: {done.stdout}{done.stderr}"


def inspected(tools, directory, case):
    """None, or how what vm-inspect prints of a library differs."""
    library = directory / case["files"]["library"]
    abi = "classic TVM ABI" if case["abi"] == "classic" else "tvm-ffi ABI"
    if case["device"] != "cpu":
        abi += ", with device code for " + case["device"].split(":")[0]
    notes = f"  Adds one to every element of x.  {SCHEMA}" if directory.name == DOCUMENTED else ""
    names = "".join(f"  {name}{notes}\n" for name in sorted(kernel["name"] for kernel in case["kernels"]))
    expected = f"{library}: lib.so ({abi})\n\nkernels: {len(case['kernels'])}\n{names}"
    done = subprocess.run([tools / "vm-inspect", library], capture_output=True, text=True, check=False)
    return None if done.stdout == expected else f"vm-inspect: {done.stdout}{done.stderr} instead of {expected}"


def refused(tool, library):
    """None, or what else than a refusal came of a Relax executable given as the model."""
    done = subprocess.run([tool, library], capture_output=True, text=True, check=False)
    expected = UNSUPPORTED, f"{tool.name}: error: {library}: {RELAX}\n"
    return None if (done.returncode, done.stderr) == expected else f"{library}: {done.returncode} {done.stderr}"


def missing(cases):
    """Libraries that the environments of this machine make and that are not there."""
    for requirements in sorted((HERE / "requirements").glob("*.txt")):
        environment = requirements.stem
        for name in CASES.get(environment, {"classic"}):
            path = cases / environment / "kernels" / name / "case.json"
            if environments.is_ready(requirements) and not path.exists():
                yield f"{path} is missing"


def main(tools, cases):
    read = {path.parent: json.loads(path.read_text()) for path in sorted(cases.glob("*/kernels/*/case.json"))}
    failed = list(missing(cases))
    relax = {directory for directory in read if directory.name == "relax"}
    failed += filter(None, (inspected(tools, directory, case) for directory, case in read.items() if directory not in relax))
    for tool in ("vm-run", "vm-inspect", "vm-convert"):
        failed += filter(None, (refused(tools / tool, directory / "lib.so") for directory in relax))
    called = {directory: case for directory, case in read.items() if directory.name != DOCUMENTED}
    called = {path: case for path, case in called.items() if has_device(tools, case["device"])}
    kernels = [Kernel(path, entry, case["device"]) for path, case in called.items() for entry in case["kernels"]]
    libraries = [directory / case["files"]["library"] for directory, case in called.items()]
    real, own = real_runtime(), tools.parent / "lib" / "rewire" / "libtvm_ffi.so"
    preloads = {"ours alone": [], "the real runtime before": [real], "the real runtime after": [own, real]}
    with tempfile.TemporaryDirectory() as folder:
        session = Session(tools, folder, kernels, libraries)
        for name, preload in preloads.items():
            failed += [f"{name}: {failure}" for failure in session.failures(preload)]
    for failure in failed:
        print(f"FAILED {failure}")
    versions = ", ".join(case["tvm"] for case in called.values())
    print(
        f"{len(kernels)} kernels of {len(libraries)} libraries (TVM {versions}) called from one program by vm-run, and "
        f"each with wrong arguments, under {len(preloads)} arrangements of runtimes: {len(failed)} failed"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path, help="the folder of vm-run")
    parser.add_argument("cases", type=pathlib.Path, help="what generate.py has filled")
    options = parser.parse_args()
    sys.exit(main(options.bin.resolve(), options.cases.resolve()))
