// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/export.h>.
//
// REWIRE_API marks the functions and classes that the libraries export.
//
// Everything else is hidden. The linker drops hidden code that no exported function needs. In headers that
// are not installed, the macro marks what librewire_prepare uses from librewire.
#pragma once

#define REWIRE_API __attribute__((visibility("default")))
