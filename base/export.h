// SPDX-License-Identifier: Apache-2.0
// Marks what librewire.so exports; everything else is hidden, and left out when nothing exported needs it.
// Only headers that are installed carry it.
#pragma once

#define REWIRE_API __attribute__((visibility("default")))
