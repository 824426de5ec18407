// What is shown at other coordinators' addresses: their certificates, looked at and no more. No call is made.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/tls/certificate.h"

namespace motley::coordinator {

struct ShownCertificate {
  std::string address;
  Certificate certificate;  // whoever answers there has its key
};

// Of those that answer by TLS in time, in the addresses' order. Blocks; any thread.
std::vector<ShownCertificate> LookAtCertificates(const std::vector<std::string>& addresses, absl::Duration patience);

}  // namespace motley::coordinator
