// SPDX-License-Identifier: Apache-2.0
// Marks what the libraries for hosts export; everything else is hidden, and left out when nothing exported
// needs it. In headers that are not installed it stands at what librewire_prepare takes from librewire.
#pragma once

#define REWIRE_API __attribute__((visibility("default")))
