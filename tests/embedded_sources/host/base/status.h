// SPDX-License-Identifier: Apache-2.0
// A header of the host that is called as one of Rewire is.
#pragma once

struct Status {
  int code = 0;
};

inline Status HostStatus(int code) { return {code}; }
