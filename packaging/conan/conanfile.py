# SPDX-License-Identifier: Apache-2.0
"""Conan 2 recipe: `conan create packaging/conan` from a checkout. packaging/README.md says what is checked of it."""

import pathlib
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy
from conan.tools.system.package_manager import Apt

FOLDERS = ["base", "cmake", "compiler", "devices", "executable_format", "include", "kernels", "packaging", "tools", "vm"]


class RewireRecipe(ConanFile):
    name = "rewire"
    license = "Apache-2.0"
    description = "Bytecode VM for compiled machine-learning models"
    topics = ("machine-learning", "inference", "onnx")
    settings = "os", "arch", "compiler", "build_type"
    package_type = "library"
    options = {"shared": [True, False], "kernels": [True, False], "devices": [True, False], "compiler": [True, False], "tools": [True, False]}
    default_options = {"shared": True, "kernels": True, "devices": True, "compiler": True, "tools": True}

    def _source(self):
        return pathlib.Path(self.recipe_folder).resolve().parent.parent

    def set_version(self):
        text = (self._source() / "CMakeLists.txt").read_text()
        self.version = re.search(r"project\(rewire VERSION ([\d.]+)", text).group(1)

    def export_sources(self):
        for name in ["CMakeLists.txt", "CHANGELOG.md", "LICENSE", "third_party/NOTICES.md"]:
            copy(self, name, self._source(), self.export_sources_folder)
        for folder in FOLDERS:
            copy(self, f"{folder}/*", self._source(), self.export_sources_folder)
        copy(self, "third_party/licenses/*", self._source(), self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def system_requirements(self):
        # As everywhere, Rewire takes its libraries from the system (third_party/README.md).
        packages = ["libdlpack-dev", "libfmt-dev", "libxxhash-dev", "libzstd-dev", "nlohmann-json3-dev", "zlib1g-dev"]
        if self.options.kernels:
            packages += ["libhwy-dev"]
        if self.options.compiler:
            packages += ["libhwy-dev", "libflatbuffers-dev", "libonnx-dev", "libprotobuf-dev", "libutf8proc-dev"]
        if self.options.tools:
            packages += ["libcli11-dev"]
        Apt(self).install(sorted(set(packages)), check=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["REWIRE_BUILD_KERNELS"] = bool(self.options.kernels)
        toolchain.cache_variables["REWIRE_BUILD_DEVICES"] = bool(self.options.devices)
        toolchain.cache_variables["REWIRE_WITH_COMPILER"] = bool(self.options.compiler)
        toolchain.cache_variables["REWIRE_BUILD_TOOLS"] = bool(self.options.tools)
        toolchain.cache_variables["REWIRE_BUILD_SERVE"] = False  # its libraries are Debian's
        for name in ["WERROR", "BUILD_TESTS", "BUILD_EXAMPLES"]:
            toolchain.cache_variables[f"REWIRE_{name}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        for name in ["LICENSE", "third_party/NOTICES.md"]:
            copy(self, name, self.source_folder, pathlib.Path(self.package_folder) / "licenses")
        CMake(self).install()

    def package_info(self):
        # The CMake package and the pkg-config files that Rewire installs itself are used, so that they are the same everywhere.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append("lib/cmake/rewire")
        self.cpp_info.libs = ["rewire"]
