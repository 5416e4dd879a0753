# SPDX-License-Identifier: Apache-2.0
# What the libraries need. Folders that need more (tools, compiler, tests) find it themselves.
# third_party/README.md says what each one is for; third_party/install.sh installs them.

find_package(Threads REQUIRED)
find_package(dlpack REQUIRED)
find_package(fmt REQUIRED)
find_package(xxHash REQUIRED)
if(REWIRE_WITH_ZSTD)
  find_package(zstd REQUIRED)
endif()
