# SPDX-License-Identifier: Apache-2.0
# Precompiled headers for targets of many sources that do not share a compilation.

# They are used where g++ compiles everything once and whole. A precompiled header belongs to one folder, so there is none where checkouts in
# several folders share what ccache has (CCACHE_BASEDIR).
set(REWIRE_PRECOMPILE OFF)
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND "$ENV{CCACHE_BASEDIR}" STREQUAL "")
  set(REWIRE_PRECOMPILE ON)
endif()

# rewire_precompile(<target> ...): target_precompile_headers, and an option without which ccache
# remembers no file that uses a precompiled header.
function(rewire_precompile target)
  target_precompile_headers(${target} ${ARGN})
  # g++ 12 forgets of what it reads precompiled that it lies in headers of the system, and reports what
  # it finds there by the flow of values.
  # Builds without a precompiled header look at the same sources with all warnings.
  target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread)
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER
                          "env;CCACHE_SLOPPINESS=pch_defines,time_macros;${CMAKE_CXX_COMPILER_LAUNCHER}")
  endif()
endfunction()
