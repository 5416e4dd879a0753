# SPDX-License-Identifier: Apache-2.0
# The libraries for hosts, and what `cmake --install` leaves: find_package(rewire) and pkg-config.
#   librewire          opens executables, links and runs them
#   librewire_prepare  what some hosts do before: parameters of other files, bundles, bounds of memory
#   librewire_compiler compiles ONNX models
#   librewire_remote   runs models that are on a server

# rewire_host_library(<name> [PUBLIC <target>...] [COPIES <archive>...]): all parts of <name>, whole: nothing of the API is
# lost because the library itself does not use it. A shared library has its own copies of what it uses of the COPIES: small
# functions without state, which librewire keeps to itself.
function(rewire_host_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PUBLIC;COPIES")
  get_property(parts GLOBAL PROPERTY REWIRE_PARTS_OF_${name})
  get_property(public GLOBAL PROPERTY REWIRE_PUBLIC_OF_${name})
  get_property(private GLOBAL PROPERTY REWIRE_PRIVATE_OF_${name})
  list(REMOVE_DUPLICATES public)
  list(REMOVE_DUPLICATES private)
  list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  string(REPLACE "rewire_" "" exported ${name})
  set(component rewire)
  if(name MATCHES "^rewire_(compiler|remote)$")
    set(component ${name})
  endif()
  add_library(${name} ${objects})
  add_library(rewire::${exported} ALIAS ${name})
  target_compile_features(${name} INTERFACE cxx_std_17)
  target_include_directories(
    ${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PUBLIC ${arg_PUBLIC} ${public} PRIVATE ${private})
  if(BUILD_SHARED_LIBS)
    target_link_libraries(${name} PRIVATE ${arg_COPIES})
    target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL)  # the copies are its own
  endif()
  if(REWIRE_EXPORT_CXX)
    set(exports ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/librewire.map)
  else()
    set(exports ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/librewire_c.map)
  endif()
  target_link_options(${name} PRIVATE -Wl,-Bsymbolic-functions -Wl,-z,noseparate-code,-z,now ${packed_relocations} ${no_unwind_of_calls}
                      -Wl,--version-script=${exports})
  if(NOT REWIRE_SANITIZE AND NOT REWIRE_HOST_SANITIZES)  # whose runtime is the program's
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(${name} PROPERTIES LINK_DEPENDS ${exports})
  if(REWIRE_LTO)
    target_link_options(${name} PRIVATE -flto=auto -flto-partition=one)  # one: to see all callers of everything
  endif()
  set_target_properties(
    ${name} PROPERTIES EXPORT_NAME ${exported} LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                       SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} INSTALL_RPATH "$ORIGIN")
  install(TARGETS ${name} EXPORT rewireTargets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component} NAMELINK_COMPONENT rewire_dev
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT rewire_dev)
endfunction()

# Relative relocations in an eighth of their room, where the linker can.
include(CheckLinkerFlag)
check_linker_flag(CXX -Wl,-z,pack-relative-relocs REWIRE_PACKED_RELOCATIONS)
set(packed_relocations $<$<BOOL:${REWIRE_PACKED_RELOCATIONS}>:-Wl,-z,pack-relative-relocs>)
# Nothing throws out of the linker's own entries for calls of other libraries.
check_linker_flag(CXX -Wl,--no-ld-generated-unwind-info REWIRE_NO_UNWIND_OF_CALLS)
set(no_unwind_of_calls $<$<BOOL:${REWIRE_NO_UNWIND_OF_CALLS}>:-Wl,--no-ld-generated-unwind-info>)

rewire_host_library(rewire)
# It calls librewire's C++ interface.
if(REWIRE_EXPORT_CXX OR NOT BUILD_SHARED_LIBS)
  rewire_host_library(rewire_prepare PUBLIC rewire COPIES rewire_base)
  set(pkg_configs rewire rewire-prepare)
  if(TARGET rewire_onnx_compiler)
    find_package(Protobuf REQUIRED)  # what the folder found is known there alone
    rewire_host_library(rewire_compiler PUBLIC rewire_prepare COPIES rewire_interval rewire_kernel_work rewire_tensor_reader rewire_base)
    list(APPEND pkg_configs rewire-compiler)
  endif()
  if(TARGET rewire_remote_client AND BUILD_SHARED_LIBS)
    find_package(simdjson REQUIRED)
    rewire_host_library(rewire_remote PUBLIC rewire COPIES rewire_format_writer rewire_base)
    list(APPEND pkg_configs rewire-remote)
  endif()
else()
  set(pkg_configs rewire)
endif()

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rewire)
install(EXPORT rewireTargets NAMESPACE rewire:: DESTINATION ${package_dir} COMPONENT rewire_dev)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/rewireConfig.cmake.in ${PROJECT_BINARY_DIR}/rewireConfig.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS REWIRE_MODULE_INSTALL_DIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rewireConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rewireConfig.cmake ${PROJECT_BINARY_DIR}/rewireConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/FindxxHash.cmake
        DESTINATION ${package_dir} COMPONENT rewire_dev)

# The .pc files find their prefix from where they lie, so that an installed tree can be moved.
set(pc_libs "-lrewire")
set(pc_prepare_libs "-lrewire_prepare")
set(pc_compiler_libs "-lrewire_compiler")
if(NOT BUILD_SHARED_LIBS)
  string(APPEND pc_libs " -lxxhash")
  string(APPEND pc_prepare_libs " -lfmt")
  string(APPEND pc_compiler_libs " -lonnx_proto -lprotobuf -lfmt")
  if(REWIRE_WITH_ZSTD)
    string(APPEND pc_libs " -lzstd")
  endif()
  string(APPEND pc_libs " -lstdc++ -pthread -l${CMAKE_DL_LIBS}")
endif()
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE pc_prefix)
foreach(pc IN LISTS pkg_configs)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${pc}.pc.in ${PROJECT_BINARY_DIR}/${pc}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT rewire_dev)
endforeach()

# The license, and the notices of what is compiled in. packaging/components.py makes the list of these.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/third_party/NOTICES.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT rewire_license)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/third_party/licenses DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT rewire_license)
