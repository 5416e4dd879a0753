/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/executable_format/linked/linked_executable.h>. */
/* Executables that are linked into the program: sources that vm-aot --bytecode writes.
 *
 * Such an executable was verified when its source was made. So opening it needs neither the reader of files
 * nor the verifier, and a program with no other executables has no code for them. docs/embedding.md tells
 * when that is worth it.
 *
 * The functions that open it are in the archive librewire.a alone. The shared library has reader and verifier
 * anyway, so there an executable is opened from its file. */
#ifndef REWIRE_EXECUTABLE_FORMAT_LINKED_LINKED_EXECUTABLE_H_
#define REWIRE_EXECUTABLE_FORMAT_LINKED_LINKED_EXECUTABLE_H_

#include <stddef.h>
#include <stdint.h>

/* The layout of the struct below. A source that was made for another one does not compile. */
#define REWIRE_LINKED_LAYOUT 1

/* Kernels read constants in place and rely on this alignment. */
#define REWIRE_LINKED_ALIGNED __attribute__((aligned(64)))

/* Only vm-aot makes these. Nothing looks at the content when it is opened, so there is no function that takes
 * bytes which come from elsewhere. */
typedef struct RewireLinkedExecutable {
  /* The address of a symbol whose name has the version of the library and a digest of what verifies and
   * decodes. A librewire of another version does not have it, so the program does not link. */
  const char* version;
  const uint64_t* tables; /* all but the constants' bytes */
  const uint64_t* data;   /* the constants' bytes, at a multiple of 64 */
} RewireLinkedExecutable;

#ifdef __cplusplus
#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"

namespace rewire {

// Opens an executable that is linked in. Its constants are used where they lie; code and tables are copied.
// Takes any number of times and threads. Errors: kInvalidArgument if vm-aot has not made it for this library.
Result<Executable> OpenLinked(const RewireLinkedExecutable& linked);

}  // namespace rewire
#endif

#endif /* REWIRE_EXECUTABLE_FORMAT_LINKED_LINKED_EXECUTABLE_H_ */
