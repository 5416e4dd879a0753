// SPDX-License-Identifier: Apache-2.0
//
// Remembers which files a program has read and written, so that it does not overwrite one of them by mistake.
//
// Names do not identify a file, because it may have several: links, "/dev/stdin" and other spellings. So the
// file itself is compared. This is for programs that run once. A host may want to write a file that it read
// before, so it leaves this off.
#pragma once

#include <sys/stat.h>

#include <string>

#include "rewire/base/status.h"

namespace rewire {

// From now on, remembers every file that MapFile and ReadFile open and every file that an AtomicFile commits.
// Standard input counts, too, if it is a file. Cannot be switched off again. Thread-safe, like all functions
// below.
void RememberTouchedFiles();

// Called by the code that opens and writes files.
void NoteReadFile(const std::string& path, const struct stat& info);
void NoteWrittenFile(const std::string& path);

// Fails with kInvalidArgument if `path` is a file that was read or written; the message names both. OK if
// nothing is remembered.
Status RefuseTouchedFile(const std::string& path);

}  // namespace rewire
