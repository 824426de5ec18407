#include "worker/daemon/known_term.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"

namespace motley::worker {
namespace {

absl::StatusOr<Term> TermIn(const std::string& pem) {
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<Certificate> certificates, Certificate::FromPem(pem));
  return TermOf(certificates.front());
}

bool IsBelieved(const std::string& pem, const std::string& authorities) {
  const auto own = Certificate::FromPem(pem), signers = Certificate::FromPem(authorities);
  return own.ok() && signers.ok() && std::any_of(signers->begin(), signers->end(), [&](const Certificate& authority) {
           return own->front().IsSignedBy(authority);
         });
}

}  // namespace

absl::StatusOr<KnownTerm> KnownTerm::Load(IdentityFolder folder) {
  MOTLEY_ASSIGN_OR_RETURN(std::string pem, folder.LoadTerm());
  MOTLEY_ASSIGN_OR_RETURN(const NodeIdentity identity, folder.Load());
  if (pem.empty()) return KnownTerm(std::move(folder), Term(), "");
  absl::StatusOr<Term> term = TermIn(pem);
  if (!term.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder.path(), "/term.crt: ", std::string(term.status().message()),
                     "; it says which coordinator this node follows. Remove it: the coordinator of the highest term that "
                     "answers counts then"));
  }
  if (!IsBelieved(pem, identity.authorities)) return KnownTerm(std::move(folder), Term(), "");
  return KnownTerm(std::move(folder), *std::move(term), std::move(pem));
}

std::string KnownTerm::Proof() const {
  const auto identity = folder_.Load();
  return identity.ok() && IsBelieved(certificate_, identity->authorities) ? certificate_ : "";
}

absl::Status KnownTerm::Follow(const Certificate& shown) {
  MOTLEY_ASSIGN_OR_RETURN(Term term, TermOf(shown));
  const TermRelation relation = Compare(term, term_);
  if (relation == TermRelation::kLower || relation == TermRelation::kRival) {
    return absl::UnavailableError(absl::StrCat("its ", ToText(term),
                                               relation == TermRelation::kLower ? " is over" : " is another's",
                                               ": this node follows the coordinator of ", ToText(term_)));
  }
  std::string pem = shown.ToPem();
  if (pem == certificate_) return absl::OkStatus();
  if (relation == TermRelation::kHigher && term_.number > 0)
    LogWarning(absl::StrCat("another machine has taken the cluster over: ", ToText(term), " follows ", ToText(term_)));
  term_ = std::move(term), certificate_ = std::move(pem);
  // Known it is in any case, as long as this process lives.
  if (absl::Status saved = folder_.SaveTerm(certificate_); !saved.ok()) {
    LogError(absl::StrCat("which coordinator this node follows could not be stored: ", std::string(saved.message())));
  }
  return absl::OkStatus();
}

}  // namespace motley::worker
