// SPDX-License-Identifier: Apache-2.0
// Marks what librewire.so exports; everything else is hidden.
#pragma once

#define REWIRE_API __attribute__((visibility("default")))
