# SPDX-License-Identifier: Apache-2.0
# Debian packages: `cmake --preset packages && cmake --build --preset packages`, or `cpack` in another build folder whose
# prefix is /usr. packaging/README.md lists the packages. dpkg-shlibdeps finds what they depend on.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rewire)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(REWIRE_PACKAGE_CONTACT "The Rewire authors <rewire@localhost>" CACHE STRING "Maintainer of the Debian packages: who builds them")
set(CPACK_PACKAGE_CONTACT ${REWIRE_PACKAGE_CONTACT})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
foreach(component REWIRE REWIRE_COMPILER REWIRE_REMOTE)
  set(CPACK_DEBIAN_${component}_PACKAGE_GENERATE_SHLIBS ON)  # the others have no library that programs link
  set(CPACK_DEBIAN_${component}_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/debian/postinst
                                                      ${PROJECT_SOURCE_DIR}/packaging/debian/postrm)
endforeach()
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENTS_ALL "")

set(version ${PROJECT_VERSION})
set(soname ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

# rewire_package(<component> <package> SECTION <section> SUMMARY <line> [DETAILS <text>] [DEPENDS <packages>]
#                [RECOMMENDS <packages>] [SUGGESTS <packages>])
# A package of one component. If nothing is installed under the component in this build, leave the call out.
macro(rewire_package component package)
  cmake_parse_arguments(arg "" "SECTION;SUMMARY;DETAILS;DEPENDS;RECOMMENDS;SUGGESTS" "" ${ARGN})
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${arg_SECTION})
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${arg_DEPENDS}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS "${arg_RECOMMENDS}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_SUGGESTS "${arg_SUGGESTS}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${arg_SUMMARY}\n${arg_DETAILS}")
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/debian/copyright ${PROJECT_BINARY_DIR}/changelog.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
endmacro()

# rewire_library_package(<component> <package> SUMMARY <line> DETAILS <text>): a package of a library above librewire that programs
# link. Its headers are in librewire-dev, which therefore needs it.
macro(rewire_library_package component package)
  rewire_package(${component} ${package} ${ARGN} SECTION libs DEPENDS "librewire${soname} (= ${version})")
  string(APPEND CPACK_DEBIAN_REWIRE_DEV_PACKAGE_DEPENDS ", ${package} (= ${version})")
endmacro()

find_program(REWIRE_GZIP gzip)
if(REWIRE_GZIP)
  execute_process(COMMAND ${REWIRE_GZIP} -9nc ${PROJECT_SOURCE_DIR}/CHANGELOG.md OUTPUT_FILE ${PROJECT_BINARY_DIR}/changelog.gz)
endif()
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/compress_manual_pages.cmake)

set(intro "Rewire runs compiled machine-learning models inside C and C++ programs, and writes results into the caller's memory.")
rewire_package(rewire librewire${soname} SECTION libs SUMMARY "bytecode VM for compiled machine-learning models"
               DETAILS "${intro} This package has librewire, which opens and runs models, and librewire_prepare."
               RECOMMENDS "rewire-kernels (= ${version})")
rewire_package(rewire_dev librewire-dev SECTION libdevel SUMMARY "bytecode VM for compiled machine-learning models (development)"
               DETAILS "${intro} This package has the headers, the CMake package and the pkg-config files."
               DEPENDS "librewire${soname} (= ${version}), libdlpack-dev")
if(REWIRE_BUILD_KERNELS AND NOT REWIRE_STATIC_KERNELS)
  rewire_package(rewire_kernels rewire-kernels SECTION libs SUMMARY "stock CPU kernels of Rewire"
                 DETAILS "${intro} This package has the kernels that models call, and what kernel libraries of the tvm-ffi ABI need."
                 RECOMMENDS "rewire-kernels-onednn (= ${version})")
  foreach(row "onednn|convolutions and products by oneDNN" "image|decoders of image files" "re2|regular expressions"
              "collective_mpi|exchange of tensors between processes by Open MPI")
    string(REGEX MATCH "^[^|]+" suffix "${row}")
    string(REGEX REPLACE "^[^|]+[|]" "" what "${row}")
    string(REPLACE "_" "-" package ${suffix})
    if(TARGET rewire_kernels_${suffix})
      rewire_package(rewire_kernels_${suffix} rewire-kernels-${package} SECTION libs SUMMARY "kernels of Rewire: ${what}"
                     DETAILS "${intro} This package has a library of kernels that models may call: ${what}."
                     RECOMMENDS "rewire-kernels (= ${version})")
    endif()
  endforeach()
endif()
if(REWIRE_BUILD_DEVICES AND REWIRE_WITH_DLOPEN)
  rewire_package(rewire_devices rewire-devices SECTION libs SUMMARY "devices of Rewire: OpenCL and CUDA"
                 DETAILS "${intro} This package has the devices OpenCL and CUDA, and their kernels. They open their drivers when they are used."
                 RECOMMENDS "rewire-kernels (= ${version})" SUGGESTS "ocl-icd-libopencl1")
endif()
if(TARGET rewire_compiler)
  rewire_library_package(rewire_compiler librewire-compiler${soname} SUMMARY "compiler of ONNX models for Rewire"
                         DETAILS "${intro} This package has librewire_compiler, by which a program compiles ONNX models.")
endif()
if(TARGET rewire_onnxruntime)
  rewire_package(rewire_onnxruntime rewire-onnxruntime SECTION libs SUMMARY "ONNX Runtime's C interface over Rewire"
                 DETAILS "${intro} This package has a libonnxruntime for programs that are written for ONNX Runtime. It lies in a folder of its own, so that only programs that are told to use it."
                 DEPENDS "librewire-compiler${soname} (= ${version}), rewire-kernels (= ${version})")
endif()
if(TARGET rewire_remote)
  rewire_library_package(rewire_remote librewire-remote${soname} SUMMARY "models on a server as programs of Rewire"
                         DETAILS "${intro} This package has librewire_remote, by which a program runs models that are on a server.")
endif()
if(REWIRE_BUILD_TOOLS)
  rewire_package(rewire_tools rewire-tools SECTION science SUMMARY "tools of Rewire: compile, run and look into models"
                 DETAILS "${intro} This package has vm-compile, vm-run, vm-debug, vm-inspect and other tools, with their manual pages and completion for shells."
                 RECOMMENDS "rewire-kernels (= ${version})")
endif()
include(CPack)
