# SPDX-License-Identifier: Apache-2.0
# An overlay port: vcpkg install rewire --overlay-ports=packaging/vcpkg. Its source is the checkout that it lies in.
get_filename_component(SOURCE_PATH ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    compiler REWIRE_WITH_COMPILER
    tools    REWIRE_BUILD_TOOLS
)

vcpkg_cmake_configure(
  SOURCE_PATH ${SOURCE_PATH}
  OPTIONS
    ${FEATURE_OPTIONS}
    -DREWIRE_WERROR=OFF
    -DREWIRE_BUILD_SERVE=OFF
    -DREWIRE_BUILD_TESTS=OFF
    -DREWIRE_BUILD_EXAMPLES=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME rewire CONFIG_PATH lib/cmake/rewire)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  set(tools vm-as vm-bench vm-bundle vm-convert vm-debug vm-dis vm-inspect vm-params vm-run vm-strip)
  if("compiler" IN_LIST FEATURES)
    list(APPEND tools vm-aot vm-compile)
  endif()
  vcpkg_copy_tools(TOOL_NAMES ${tools} AUTO_CLEAN)
endif()
file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/debug/include ${CURRENT_PACKAGES_DIR}/debug/share)
vcpkg_install_copyright(FILE_LIST ${SOURCE_PATH}/LICENSE)
