# SPDX-License-Identifier: Apache-2.0
# Runs before cpack makes packages of a folder: Debian wants manual pages compressed, without a time.
file(GLOB_RECURSE pages ${CPACK_TEMPORARY_DIRECTORY}/vm-*.1)
foreach(page IN LISTS pages)
  execute_process(COMMAND gzip -9n ${page} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
