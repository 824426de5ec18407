// What a node shows of itself and whom it believes: its key, its certificate, and the authorities' certificates. A server refuses
// a certificate without a reason ("Socket closed"), so a node looks at its own before it dials. Plain values.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"

namespace motley {

// All in PEM.
struct NodeIdentity {
  std::string key;
  std::string certificate;
  std::string authorities;  // several while the cluster changes to a new one
};

// Whether a coordinator of the cluster would let it in as that node, as far as its own files say. FAILED_PRECONDITION: what is
// wrong, and what mends it. UNAVAILABLE: it is not valid yet, or has expired, by this machine's clock, whose next correction may
// mend it.
absl::Status CheckIdentity(const NodeIdentity& identity, const NodeName& node, absl::Time now);

// When to have it renewed: when a third of the time for which it was given is left. Of one that passes CheckIdentity.
absl::Time RenewalOf(const NodeIdentity& identity);

}  // namespace motley
