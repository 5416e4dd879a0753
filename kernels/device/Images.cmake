# SPDX-License-Identifier: Apache-2.0
# Device code that nvcc compiles while Rewire is built, so that CUDA programs start without compiling. Where there is no
# nvcc the list is empty, and the driver's NVRTC compiles the same code when a program first uses it.
#
# rewire_device_images(<out source> <out files>): a source with the table of device_images.h, and the files it includes.
find_program(REWIRE_NVCC nvcc DOC "NVIDIA's compiler, for device code that is compiled ahead; empty: none")
option(REWIRE_DEVICE_IMAGES "Compile device code for CUDA ahead, where nvcc is" ON)

function(rewire_device_images out_source out_files)
  set(files)
  set(assembly)
  set(declarations)
  set(rows)
  # As programs.h numbers them; "file:Program:Form:option".
  set(programs)
  foreach(program IN ITEMS elementwise:kElementwise product:kProduct window:kWindow reduction:kReduction lines:kLines
                           recurrent:kRecurrent)
    list(APPEND programs ${program}:kF32: ${program}:kF16:-DREWIRE_F16)
  endforeach()
  list(APPEND programs quantization:kQuantization:kF32: integer:kInteger:kF32: scatter:kScatter:kF32: trees:kTrees:kF32:
       attention:kAttention:kF32:)
  foreach(word IN ITEMS kBytes1:u8 kBytes2:ushort kBytes4:uint kBytes8:ulong)
    string(REPLACE ":" ":-DWORD=" form ${word})
    list(APPEND programs movement:kMovement:${form} indexing:kIndexing:${form})
  endforeach()
  if(REWIRE_NVCC AND REWIRE_DEVICE_IMAGES AND NOT REWIRE_SANITIZE)
    # PTX for the oldest one serves what is newer than all of them.
    set(targets -gencode=arch=compute_80,code=[sm_80,compute_80] -gencode=arch=compute_90,code=sm_90
                -gencode=arch=compute_100,code=sm_100)
    foreach(row IN LISTS programs)
      string(REPLACE ":" ";" parts "${row}")
      list(GET parts 0 file)
      list(GET parts 1 program)
      list(GET parts 2 form)
      list(GET parts 3 option)
      set(image ${CMAKE_CURRENT_BINARY_DIR}/images/${file}_${form}.fatbin)
      set(source ${CMAKE_CURRENT_BINARY_DIR}/images/${file}_${form}.cu)
      file(READ ../contract/scalar_functions.h text)
      foreach(part IN ITEMS arguments dialect tiles ${file})
        file(READ code/${part}.h content)
        string(APPEND text "${content}")
      endforeach()
      file(CONFIGURE OUTPUT ${source} CONTENT "@text@" @ONLY)
      add_custom_command(OUTPUT ${image} DEPENDS ${source} VERBATIM
                         COMMAND ${REWIRE_NVCC} -fatbin -O3 -w ${option} ${targets} -o ${image} ${source}
                         COMMENT "Compiling device code ${file} ${form} for CUDA")
      list(APPEND files ${image})
      set(symbol rewire_image_${file}_${form})
      string(APPEND assembly "IMAGE(${symbol}, \"${image}\")\n")
      string(APPEND declarations "extern \"C\" const unsigned char ${symbol}[], ${symbol}_end[];\n")
      string(APPEND rows "      {Program::${program}, Form::${form}, ${symbol}, ${symbol}_end},\n")
    endforeach()
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/device_images.cc)
  configure_file(call/device_images.cc.in ${source} @ONLY)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}")
  set(${out_source} ${source} PARENT_SCOPE)
  set(${out_files} ${files} PARENT_SCOPE)
endfunction()
