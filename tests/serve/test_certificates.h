// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rewire/tests/support/run_program.h"

namespace rewire::serve::test {

// CertificateWish: the contents of a certificate. Times are in seconds from now.
struct CertificateWish {
  std::string name;       // of its files and its subject
  std::string authority;  // the name of the one that signs it; empty: itself, as an authority
  std::string alt_names;  // as "DNS:localhost,IP:127.0.0.1"; empty: none
  long from = -3600;
  long until = 3600;
};

// Makes a key and a certificate, NAME.key and NAME.pem in the folder. The authority must have been made
// there.
void MakeCertificate(const rewire::test::TempFolder& folder, const CertificateWish& wish);

}  // namespace rewire::serve::test
