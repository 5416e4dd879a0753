# SPDX-License-Identifier: Apache-2.0
# Finds utf8proc, which ships no CMake package on Debian. Defines utf8proc::utf8proc: the archive, if there is one.

find_path(utf8proc_INCLUDE_DIR utf8proc.h)
find_library(utf8proc_LIBRARY NAMES libutf8proc.a utf8proc)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(utf8proc REQUIRED_VARS utf8proc_LIBRARY utf8proc_INCLUDE_DIR)
mark_as_advanced(utf8proc_INCLUDE_DIR utf8proc_LIBRARY)

if(utf8proc_FOUND AND NOT TARGET utf8proc::utf8proc)
  add_library(utf8proc::utf8proc UNKNOWN IMPORTED)
  set_target_properties(utf8proc::utf8proc PROPERTIES IMPORTED_LOCATION ${utf8proc_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${utf8proc_INCLUDE_DIR})
  if(utf8proc_LIBRARY MATCHES "\\.a$")
    # What the archive holds stays inside the library that links it.
    set_target_properties(utf8proc::utf8proc PROPERTIES INTERFACE_COMPILE_DEFINITIONS UTF8PROC_STATIC
                          INTERFACE_LINK_OPTIONS "LINKER:--exclude-libs,libutf8proc.a")
  endif()
endif()
