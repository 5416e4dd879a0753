# SPDX-License-Identifier: Apache-2.0
# Language, warnings, sanitizers and output folders of everything in the tree.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# The build tree has the shape of the install tree, so that a tool finds lib/rewire beside itself in both.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(REWIRE_MODULE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/rewire)
set(REWIRE_MODULE_INSTALL_DIR ${CMAKE_INSTALL_LIBDIR}/rewire)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

# Nobody replaces a function of librewire by preloading another: exported functions may be inlined and called directly.
add_compile_options(-Wall -Wextra -ffunction-sections -fdata-sections -fno-semantic-interposition)
add_link_options(-Wl,--gc-sections)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(REWIRE_LTO OFF)  # archives that other linkers can use need g++'s fat objects
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports "a" + std::string as overlapping memory (GCC bug 105651).
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # There g++ takes a source for a header, and a class of one source with a member from its unnamed namespace for a mistake.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ collects its garbage when it has 128 MB, again and again. With 1 GB most sources are compiled without: those that take 300 MB or more
  # in an eighth less time and a third more memory, small ones as before. The code is the same, so that ccache need not know.
  add_compile_options(--param=ggc-min-heapsize=1048576)
  foreach(language IN ITEMS C CXX)
    if(CMAKE_${language}_COMPILER_LAUNCHER MATCHES "ccache$")
      list(PREPEND CMAKE_${language}_COMPILER_LAUNCHER env CCACHE_IGNOREOPTIONS=--param=ggc-*)
    endif()
  endforeach()
endif()
if(REWIRE_WERROR)
  add_compile_options(-Werror)
endif()

if(NOT REWIRE_WITH_ZSTD)
  add_compile_definitions(REWIRE_NO_ZSTD)
endif()
if(NOT REWIRE_WITH_DLOPEN)
  add_compile_definitions(REWIRE_NO_DLOPEN)
endif()

if(REWIRE_SHORT_MESSAGES)
  add_compile_definitions(REWIRE_SHORT_MESSAGES)
endif()

if(REWIRE_SANITIZE OR REWIRE_ASSERTIONS)
  add_compile_definitions(REWIRE_ASSERTIONS)
endif()
# A host that takes these sources into its build may sanitize all of it.
get_directory_property(options COMPILE_OPTIONS)
if("${CMAKE_CXX_FLAGS} ${options}" MATCHES "-fsanitize=")
  set(REWIRE_HOST_SANITIZES ON)
endif()
if(REWIRE_SANITIZE)
  add_compile_options(-fsanitize=${REWIRE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${REWIRE_SANITIZE})
endif()
# clang's function check compares type information by address, which differs between a program and a kernel library
# whose symbols are hidden: every call into a loaded kernel would be reported.
if((REWIRE_SANITIZE MATCHES "undefined" OR REWIRE_HOST_SANITIZES) AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-fno-sanitize=function)
endif()
if(REWIRE_BUILD_FUZZ AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "REWIRE_BUILD_FUZZ needs clang (libFuzzer); use the preset 'asan-ubsan'")
endif()
