# SPDX-License-Identifier: Apache-2.0
# librewire for embedders, and what `cmake --install` leaves: find_package(rewire) and pkg-config.

get_property(embedded GLOBAL PROPERTY REWIRE_EMBEDDED_LIBRARIES)
if(NOT embedded)
  message(STATUS "rewire: no library sources yet, librewire is not built")
  return()
endif()
get_property(public GLOBAL PROPERTY REWIRE_EMBEDDED_PUBLIC)
get_property(private GLOBAL PROPERTY REWIRE_EMBEDDED_PRIVATE)
list(REMOVE_DUPLICATES public)
list(REMOVE_DUPLICATES private)

# The objects of the component libraries, whole: nothing of the API is lost because librewire itself does not use it.
list(TRANSFORM embedded REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
add_library(rewire ${objects})
add_library(rewire::rewire ALIAS rewire)
target_compile_features(rewire INTERFACE cxx_std_17)
target_include_directories(
  rewire INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                   $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/rewire>)
target_link_libraries(rewire PUBLIC ${public} PRIVATE ${private})
target_link_options(rewire PRIVATE -Wl,-Bsymbolic-functions -Wl,-z,noseparate-code
                    -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/librewire.map)
set_target_properties(rewire PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/librewire.map)
if(REWIRE_LTO)
  target_link_options(rewire PRIVATE -flto=auto)
endif()
set_target_properties(rewire PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

install(TARGETS rewire EXPORT rewireTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT rewire NAMELINK_COMPONENT rewire_dev
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT rewire_dev)

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rewire)
install(EXPORT rewireTargets NAMESPACE rewire:: DESTINATION ${package_dir} COMPONENT rewire_dev)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/rewireConfig.cmake.in ${PROJECT_BINARY_DIR}/rewireConfig.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS REWIRE_MODULE_INSTALL_DIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rewireConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rewireConfig.cmake ${PROJECT_BINARY_DIR}/rewireConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/FindxxHash.cmake
        DESTINATION ${package_dir} COMPONENT rewire_dev)

# The .pc file finds its prefix from where it lies, so that an installed tree can be moved.
set(pc_libs "-lrewire")
if(NOT BUILD_SHARED_LIBS)
  string(APPEND pc_libs " -lfmt -lxxhash")
  if(REWIRE_WITH_ZSTD)
    string(APPEND pc_libs " -lzstd")
  endif()
  string(APPEND pc_libs " -lstdc++ -pthread -l${CMAKE_DL_LIBS}")
endif()
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE pc_prefix)
configure_file(${CMAKE_CURRENT_LIST_DIR}/rewire.pc.in ${PROJECT_BINARY_DIR}/rewire.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rewire.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT rewire_dev)
