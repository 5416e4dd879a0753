# SPDX-License-Identifier: Apache-2.0
# The program of both projects. It finds its headers before those of Rewire.
add_executable(host ${CMAKE_CURRENT_LIST_DIR}/main.cc)
target_include_directories(host BEFORE PRIVATE ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(host PRIVATE rewire::rewire)
target_compile_features(host PRIVATE cxx_std_17)

enable_testing()
add_test(NAME host COMMAND host)
set_tests_properties(host PROPERTIES PASS_REGULAR_EXPRESSION "'no_such_model.rwx': No such file")

# A project that is added changes nothing of the one that adds it.
foreach(variable CMAKE_BUILD_TYPE BUILD_SHARED_LIBS CMAKE_CXX_STANDARD CMAKE_RUNTIME_OUTPUT_DIRECTORY)
  if(NOT "${${variable}}" STREQUAL "${before_${variable}}")
    message(FATAL_ERROR "Rewire sets ${variable} of the host to '${${variable}}'; it was '${before_${variable}}'")
  endif()
endforeach()
if(TARGET isa-doc OR TARGET vm-run)
  message(FATAL_ERROR "Rewire builds its tools inside of a host that has not asked for them")
endif()
