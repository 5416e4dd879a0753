// SPDX-License-Identifier: Apache-2.0
//
// Remembers files under their temporary names, so that a program that a signal ends leaves none behind.
#pragma once

#include <string>

namespace rewire {

// Called by AtomicFile. More than a few at once, or very long paths, are not remembered. Thread-safe.
void NoteUnfinishedFile(const std::string& path);
void ForgetUnfinishedFile(const std::string& path);

// Removes all that are remembered. A signal handler may call it; nothing may be written afterwards.
void RemoveUnfinishedFiles();

}  // namespace rewire
