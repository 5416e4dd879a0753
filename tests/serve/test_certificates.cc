// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/serve/test_certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>

namespace rewire::serve::test {
namespace {

using Key = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
using Certificate = std::unique_ptr<X509, void (*)(X509*)>;
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File Opened(const std::string& path, const char* mode) {
  File file(std::fopen(path.c_str(), mode), std::fclose);
  REQUIRE(file != nullptr);
  return file;
}

void AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, void (*)(X509_EXTENSION*)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()), X509_EXTENSION_free);
  REQUIRE(extension != nullptr);
  REQUIRE(X509_add_ext(certificate, extension.get(), -1) == 1);
}

}  // namespace

void MakeCertificate(const rewire::test::TempFolder& folder, const CertificateWish& wish) {
  const std::string base = folder.path().string() + "/";
  const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const Certificate made(X509_new(), X509_free);
  REQUIRE(key != nullptr);
  REQUIRE(made != nullptr);
  static std::atomic<long> serial{1};
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), wish.from);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), wish.until);
  X509_set_pubkey(made.get(), key.get());
  X509_NAME* const subject = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(wish.name.c_str()), -1, -1, 0);
  Key signing(nullptr, EVP_PKEY_free);
  Certificate issuer(nullptr, X509_free);
  if (!wish.authority.empty()) {
    signing.reset(
        PEM_read_PrivateKey(Opened(base + wish.authority + ".key", "r").get(), nullptr, nullptr, nullptr));
    issuer.reset(PEM_read_X509(Opened(base + wish.authority + ".pem", "r").get(), nullptr, nullptr, nullptr));
    REQUIRE(issuer != nullptr);
  }
  X509* const by = issuer == nullptr ? made.get() : issuer.get();
  X509_set_issuer_name(made.get(), X509_get_subject_name(by));
  AddExtension(made.get(), by, NID_basic_constraints, issuer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
  if (!wish.alt_names.empty()) AddExtension(made.get(), by, NID_subject_alt_name, wish.alt_names);
  REQUIRE(X509_sign(made.get(), signing == nullptr ? key.get() : signing.get(), EVP_sha256()) > 0);
  REQUIRE(PEM_write_PrivateKey(Opened(base + wish.name + ".key", "w").get(), key.get(), nullptr, nullptr, 0,
                               nullptr, nullptr) == 1);
  REQUIRE(PEM_write_X509(Opened(base + wish.name + ".pem", "w").get(), made.get()) == 1);
}

}  // namespace rewire::serve::test
