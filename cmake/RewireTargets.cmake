# SPDX-License-Identifier: Apache-2.0
# The kinds of target that the tree is made of. Every folder declares its own with explicit source lists.

# The level at which code is compiled that is to be small.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag("-Werror -fvect-cost-model=dynamic -funswitch-loops" REWIRE_HAVE_PLAIN_LOOPS)
# Whether single functions can be compiled by -O3, those of kernels/cpu/support/wide_loop.h.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("
#if !defined(__x86_64__) || defined(__clang__)
#error others have one copy of a loop, and clang knows no such attribute
#endif
[[gnu::target(\"avx2\"), gnu::optimize(\"O3\"), gnu::flatten, gnu::noinline]] void Run() {}
int main() { Run(); }" REWIRE_HAVE_WIDE_SUMS)
check_cxx_compiler_flag(-Oz REWIRE_HAVE_OZ)
if(REWIRE_HAVE_OZ)
  set(REWIRE_FOR_SIZE -Oz)
else()
  set(REWIRE_FOR_SIZE -Os)
endif()
# And what makes it smaller still, at a price in speed: for the preset minimal.
check_cxx_compiler_flag("-Werror -fno-inline-functions-called-once -fno-plt" REWIRE_HAVE_SMALLEST)
set(REWIRE_SMALLEST ${REWIRE_FOR_SIZE})
if(REWIRE_HAVE_SMALLEST)
  list(APPEND REWIRE_SMALLEST -fno-inline-functions-called-once -fno-plt)
endif()

# rewire_library(<name> [PART_OF <library> [FOR_SPEED]] SOURCES <.cc>... [HOT <.cc>...] [HEADERS <.h>...] [C_HEADERS <.h>...]
#                [PUBLIC <target>...] [PRIVATE <target>...])
#
# A static library of one folder. HEADERS and C_HEADERS are its public headers, relative to the folder: they are
# installed, and the build proves that each compiles alone as C++17, C_HEADERS also as C11. PART_OF names the
# library for hosts that it is put into, rewire, rewire_prepare or rewire_compiler (RewirePackage.cmake). Unless it is FOR_SPEED, such a part is built for size in
# Release, but for those SOURCES that are also in HOT: what a run executes, not what opens a file or words an error. A library without sources is an interface.
function(rewire_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "FOR_SPEED" "PART_OF" "SOURCES;HOT;HEADERS;C_HEADERS;PUBLIC;PRIVATE")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "rewire_library(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  if(arg_PART_OF AND "${arg_PUBLIC};${arg_PRIVATE}" MATCHES "[$]<.*rewire_")
    message(FATAL_ERROR "rewire_library(${name}): name parts of this tree without generator expressions, so that they can be told from others")
  endif()

  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
    rewire_library_options(${name})
    if(arg_PART_OF AND NOT arg_FOR_SPEED AND REWIRE_LTO)
      # Both forms: what links this archive, as tests and tools do, uses the machine code; what is for hosts takes the objects.
      # g++ 12 takes functions of equal code for one, std::shared_ptr's of two types say, and then drops a store that the
      # one reads under the other's type: ThreadPool::Serial returned null. Without strict aliasing it keeps the store.
      target_compile_options(${name} PRIVATE -flto=auto -ffat-lto-objects -fno-strict-aliasing)
      target_link_options(${name} INTERFACE -fno-lto)
    endif()
    # Sources with options of their own are compiled one by one. Presets that are for haste have options for a whole library alone.
    if(arg_PART_OF AND NOT arg_FOR_SPEED AND (REWIRE_LTO OR NOT CMAKE_UNITY_BUILD))
      set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
      foreach(source IN LISTS arg_SOURCES)
        set(options "$<$<CONFIG:MinSizeRel>:${REWIRE_SMALLEST}>")
        if(NOT source IN_LIST arg_HOT)
          list(APPEND options $<$<CONFIG:Release>:${REWIRE_FOR_SIZE}>)
        endif()
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${options})
      endforeach()
    elseif(arg_PART_OF AND NOT arg_FOR_SPEED AND NOT arg_HOT)
      target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:${REWIRE_FOR_SIZE}>)
    endif()
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${name} INTERFACE ${arg_PUBLIC})
  endif()

  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  foreach(header IN LISTS arg_HEADERS arg_C_HEADERS)
    cmake_path(SET path NORMALIZE "${folder}/${header}")
    cmake_path(GET path PARENT_PATH destination)
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rewire/${destination} COMPONENT rewire_dev)
    set_property(GLOBAL APPEND PROPERTY REWIRE_PUBLIC_HEADERS ${path})
    if(header IN_LIST arg_C_HEADERS)
      set_property(GLOBAL APPEND PROPERTY REWIRE_PUBLIC_C_HEADERS ${path})
    endif()
  endforeach()

  if(arg_PART_OF)
    get_target_property(type ${name} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      set_property(GLOBAL APPEND PROPERTY REWIRE_PARTS_OF_${arg_PART_OF} ${name})
    endif()
    # Dependencies that are libraries of this tree are inside already.
    list(FILTER arg_PUBLIC EXCLUDE REGEX "^rewire_")
    list(FILTER arg_PRIVATE EXCLUDE REGEX "^rewire_")
    set_property(GLOBAL APPEND PROPERTY REWIRE_PUBLIC_OF_${arg_PART_OF} ${arg_PUBLIC})
    set_property(GLOBAL APPEND PROPERTY REWIRE_PRIVATE_OF_${arg_PART_OF} ${arg_PRIVATE})
  endif()
endfunction()

# Flags of library code alone: tests and tools may use exceptions even where the libraries do without.
function(rewire_library_options name)
  # What libFuzzer learns from: which branches of a library an input took, and what was compared there.
  if(REWIRE_BUILD_FUZZ)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(NOT REWIRE_WITH_EXCEPTIONS)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions> -fno-unwind-tables
                                           -fno-asynchronous-unwind-tables)
    # No class of it is seen from outside, so nobody asks for its type while running.
    if(BUILD_SHARED_LIBS AND NOT REWIRE_EXPORT_CXX)
      target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
    endif()
  endif()
endfunction()

# rewire_module(<target>): puts a library that is loaded at run time where the loader looks for it, <libdir>/rewire,
# in the build tree and when installed. Its component is that of the package that has it (RewireDebian.cmake).
function(rewire_module name)
  set(component rewire_kernels)
  if(name MATCHES "rewire_kernels_(onednn|image|re2|collective_mpi)$")
    set(component ${name})
  elseif(name MATCHES "device|collective_nccl")
    set(component rewire_devices)
  elseif(name STREQUAL "rewire_sentencepiece")
    set(component rewire_tools)  # vm-serve's
  endif()
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${REWIRE_MODULE_OUTPUT_DIRECTORY}
                        ARCHIVE_OUTPUT_DIRECTORY ${REWIRE_MODULE_OUTPUT_DIRECTORY} INSTALL_RPATH "$ORIGIN")
  install(TARGETS ${name} LIBRARY DESTINATION ${REWIRE_MODULE_INSTALL_DIR} COMPONENT ${component}
                          ARCHIVE DESTINATION ${REWIRE_MODULE_INSTALL_DIR} COMPONENT rewire_dev)
endfunction()

# What the kernel drill checks besides (tests/fuzz/kernels): conversions of floats that an integer does not hold, which
# `undefined` leaves out, and how much is done between two questions whether to go on, which it counts in branches.
set(REWIRE_COUNT_BRANCHES OFF)
if(REWIRE_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(REWIRE_COUNT_BRANCHES ON)
endif()

# rewire_at_least_sixteen_as_one(<target>): more sources of it share a compilation than of others, where sources share any, since what they
# all include is most of their compilation.
function(rewire_at_least_sixteen_as_one target)
  if(CMAKE_UNITY_BUILD_BATCH_SIZE GREATER 0 AND CMAKE_UNITY_BUILD_BATCH_SIZE LESS 16)
    set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 16)
  endif()
endfunction()

# rewire_kernel_library(<suffix> SOURCES <.cc>... MODULE_SOURCES <.cc>... [PLAIN_LOOPS <.cc>...] [WIDE_SUMS <.cc>...]
#                       [PRIVATE <target>...] [NOT_IN_MODULE <target>...])
#
# A library of kernels, target rewire_kernels_<suffix>: a module that the loader opens, or with
# REWIRE_STATIC_KERNELS an archive that the host links. What is NOT_IN_MODULE is linked by the archive and the tests alone. It sees vm's kernel-side headers and links nothing of the VM.
# MODULE_SOURCES, with the symbols that the loader looks for, are left out of the archive. PLAIN_LOOPS are sources whose loops are as fast
# by -O2 with its vectors as by -O3. WIDE_SUMS are sources whose loops are so, too, but for those of kernels/cpu/support/wide_loop.h,
# which -O3 compiles. Tests link the objects, rewire_kernels_<suffix>_objects.
function(rewire_kernel_library suffix)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;MODULE_SOURCES;PLAIN_LOOPS;WIDE_SUMS;PRIVATE;NOT_IN_MODULE")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "rewire_kernel_library(${suffix}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(name rewire_kernels_${suffix})
  # Loops over tensors gain from what -O3 adds, the rest of the tree only grows. No kernel reads errno or traps.
  # Sanitized, they are compiled for the tests alone, and optimizing them would take most of that build.
  set(level $<$<CONFIG:Release,RelWithDebInfo>:${REWIRE_KERNEL_OPTIMIZATION}>)
  set(plain_level ${level})
  set(wide_sums OFF)
  if(REWIRE_SANITIZE)
    set(level -O0)
    set(plain_level -O0)
  elseif(REWIRE_HAVE_PLAIN_LOOPS AND REWIRE_KERNEL_OPTIMIZATION STREQUAL "-O3")
    set(plain_level -O2 -fvect-cost-model=dynamic -funswitch-loops)
    list(TRANSFORM plain_level REPLACE "(.+)" "$<$<CONFIG:Release,RelWithDebInfo>:\\1>")
    set(wide_sums ${REWIRE_HAVE_WIDE_SUMS})
  endif()
  if(arg_WIDE_SUMS AND NOT wide_sums)
    list(APPEND arg_SOURCES ${arg_WIDE_SUMS})
    set(arg_WIDE_SUMS)
  endif()
  rewire_kernel_objects(${name}_objects SOURCES ${arg_SOURCES} LEVEL ${level} LIBS ${arg_PRIVATE} ${arg_NOT_IN_MODULE})
  set(objects $<TARGET_OBJECTS:${name}_objects>)
  if(arg_PLAIN_LOOPS)
    rewire_kernel_objects(${name}_plain SOURCES ${arg_PLAIN_LOOPS} LEVEL ${plain_level} LIBS ${arg_PRIVATE} ${arg_NOT_IN_MODULE})
    target_sources(${name}_objects INTERFACE $<TARGET_OBJECTS:${name}_plain>)
    list(APPEND objects $<TARGET_OBJECTS:${name}_plain>)
  endif()
  if(arg_WIDE_SUMS)
    rewire_kernel_objects(${name}_wide_sums SOURCES ${arg_WIDE_SUMS} LEVEL ${plain_level} LIBS ${arg_PRIVATE} ${arg_NOT_IN_MODULE})
    target_compile_definitions(${name}_wide_sums PRIVATE REWIRE_WIDE_SUMS)
    target_sources(${name}_objects INTERFACE $<TARGET_OBJECTS:${name}_wide_sums>)
    list(APPEND objects $<TARGET_OBJECTS:${name}_wide_sums>)
  endif()
  if(REWIRE_STATIC_KERNELS)
    add_library(${name} STATIC ${objects})
    target_link_libraries(${name} PRIVATE ${arg_NOT_IN_MODULE})
  else()
    add_library(${name} MODULE ${objects} ${arg_MODULE_SOURCES})
  endif()
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PUBLIC dlpack::dlpack PRIVATE ${arg_PRIVATE})
  rewire_module(${name})
endfunction()

# rewire_kernel_objects(<target> SOURCES <.cc>... LEVEL <option>... LIBS <target>...): kernels' objects, compiled by one set of options.
function(rewire_kernel_objects target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LEVEL;LIBS")
  add_library(${target} OBJECT ${arg_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} PUBLIC dlpack::dlpack PRIVATE ${arg_LIBS})
  # Short loops begin at multiples of 32 bytes. Where a loop of 20 bytes spans two lines of the CPU's instruction
  # cache, it runs at half the speed, and every change elsewhere in the file may move it there.
  target_compile_options(${target} PRIVATE ${arg_LEVEL} -fno-math-errno -fno-trapping-math -falign-loops=32)
  if(REWIRE_COUNT_BRANCHES)
    target_compile_options(${target} PRIVATE -fsanitize=float-cast-overflow -fsanitize-coverage=trace-pc-guard)
  endif()
  rewire_library_options(${target})
endfunction()

# rewire_device_library(<suffix> SOURCES <.cc>...): a library that makes something a device, target rewire_device_<suffix>.
# The loader opens it. It sees vm's kernel-side headers, links nothing of the VM, and opens its driver by itself.
function(rewire_device_library suffix)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES")
  set(name rewire_device_${suffix})
  add_library(${name} MODULE ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PRIVATE rewire_device_support dlpack::dlpack ${CMAKE_DL_LIBS})
  # Drivers keep threads and objects for the whole process.
  target_link_options(${name} PRIVATE -Wl,-z,nodelete)
  rewire_module(${name})
endfunction()

# rewire_light_optimization(<target>...): for code that opens files, makes texts or prepares what others run. By -O2 it is no faster where it
# matters, and takes up to twice as long to compile.
function(rewire_light_optimization)
  if(NOT REWIRE_SANITIZE)
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
    endforeach()
  endif()
endfunction()

# rewire_command_line(<target>): the target includes CLI11. That is all headers: sanitized and optimized, it takes 9 seconds in
# each of a dozen sources, so sanitized it is not optimized.
function(rewire_command_line target)
  if(REWIRE_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
  rewire_light_optimization(${target})
endfunction()

# rewire_tool(<name> SOURCES <.cc>... [LIBS <target>...]): a command line tool, installed with its manual page and with
# completion for shells. The tool itself makes these from its options (tools/io/option_text.h).
function(rewire_tool name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBS})
  rewire_command_line(${name})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT rewire_tools)
  if(CMAKE_CROSSCOMPILING OR REWIRE_SANITIZE)
    return()
  endif()
  foreach(form IN ITEMS bash zsh fish man)
    set(bash bash-completion/completions/${name})
    set(zsh zsh/site-functions/_${name})
    set(fish fish/vendor_completions.d/${name}.fish)
    set(man man/man1/${name}.1)
    cmake_path(SET file ${PROJECT_BINARY_DIR}/share/${${form}})
    cmake_path(GET file PARENT_PATH folder)
    add_custom_command(TARGET ${name} POST_BUILD COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
                       COMMAND ${name} --generate ${form} > ${file})
    cmake_path(GET ${form} PARENT_PATH destination)
    if(form STREQUAL "man")
      set(destination ${CMAKE_INSTALL_MANDIR}/man1)
    else()
      set(destination ${CMAKE_INSTALL_DATADIR}/${destination})
    endif()
    install(FILES ${file} DESTINATION ${destination} COMPONENT rewire_tools)
  endforeach()
endfunction()
