// Which coordinator is the cluster's. Each time that another machine takes the cluster over the term goes up by one; it stands in
// the coordinator's certificate, so only the cluster's authority can say it. Two machines that take over from one backup have the
// same number and differ by the id. Plain values.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/tls/certificate.h"

namespace motley {

struct Term {
  int64_t number = 0;  // counts from 1; 0: none
  std::string id;      // 16 hex digits, random
  friend bool operator==(const Term&, const Term&) = default;
};

// With a new id. INTERNAL: the system has no random bytes now.
absl::StatusOr<Term> NewTerm(int64_t number);

// "term 3 (5e0c4b29bb5a7fbd)", for people.
std::string ToText(const Term& term);

// Of a coordinator's certificate: its one URI, "spiffe://motley/term/3/5e0c4b29bb5a7fbd".
std::string UriOf(const Term& term);
// INVALID_ARGUMENT: not exactly one URI, or none of these.
absl::StatusOr<Term> TermOf(const Certificate& certificate);

// What a coordinator that shows a term is for one that knows another.
enum class TermRelation {
  kSame,
  kHigher,
  kLower,
  kRival,  // the same number of another id: who was first counts
};
TermRelation Compare(const Term& shown, const Term& known);

}  // namespace motley
