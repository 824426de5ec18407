#include "coordinator/members/term.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/files.h"
#include "common/base/logging.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/tls/certificate.h"
#include "coordinator/members/joining.h"
#include "coordinator/members/registry.h"

namespace motley::coordinator {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(2);
constexpr size_t kMostOthers = 32;
constexpr size_t kLongestAddress = 255;
constexpr size_t kIdDigits = 16;
constexpr int64_t kLargestCertificates = 64 << 10;

constexpr char kHowBack[] =
    "Only if this machine is to be the cluster's coordinator: motley-coordinator restore --take-over BACKUP "
    "(docs/use/coordinator-lost.md)";

Term OwnOf(const std::vector<TermRecord>& terms) {
  Term own;
  for (const TermRecord& record : terms) {
    if (record.own && record.term.number > own.number) own = record.term;
  }
  return own;
}

// By the certificate in its folder, where its authority signed that: a row of the store may be lost.
Term ShownBefore(const Core& core) {
  const auto pem = ReadSmallFile(ClusterAuthority::FilesIn(TlsFolder(core.config)).certificates, kLargestCertificates);
  const auto read = pem.ok() ? Certificate::FromPem(*pem) : pem.status();
  if (!read.ok() || core.authority->NumberOf(read->front().ToPem()) == 0) return Term();
  return TermOf(read->front()).value_or(Term());
}

// Those that most members name first.
std::vector<std::string> Addresses(const std::vector<MemberRecord>& members) {
  std::map<std::string, int> named;
  for (const MemberRecord& member : members) {
    for (const std::string& address : member.coordinators) ++named[address];
  }
  std::vector<std::string> addresses;
  for (const auto& [address, times] : named) addresses.push_back(address);
  std::stable_sort(addresses.begin(), addresses.end(), [&](const auto& a, const auto& b) { return named[a] > named[b]; });
  if (addresses.size() > kMostOthers) addresses.resize(kMostOthers);
  return addresses;
}

// The highest of those that the cluster's authority signed, with where it was shown; an empty address: there is none.
std::pair<std::string, Term> Highest(const ClusterAuthority& authority, const std::vector<ShownCertificate>& shown) {
  std::pair<std::string, Term> highest;
  for (const ShownCertificate& one : shown) {
    const auto term = TermOf(one.certificate);
    if (!term.ok() || authority.NumberOf(one.certificate.ToPem()) == 0) continue;
    if (highest.first.empty() || term->number > highest.second.number) highest = {one.address, *term};
  }
  return highest;
}

absl::Status TakenOver(const Term& own, const std::string& who, const Term& higher) {
  return absl::AbortedError(absl::StrCat("another machine has taken the cluster over: ", who, " shows ", ToText(higher),
                                         ", this coordinator has ", ToText(own),
                                         ". Nodes follow the higher one; leave this one down (systemctl disable --now "
                                         "motley-coordinator). ",
                                         kHowBack));
}

// Written down, so that it is known at the next start, too, and the next take-over goes above it.
void EndFor(Core& core, const std::string& who, const Term& higher) {
  if (core.ended) return;
  core.ended = TakenOver(core.term, who, higher);
  core.stopping = true;  // what it would still decide is another's to decide
  Batch batch;
  batch.terms.push_back({higher, false});
  batch.events.push_back(NodeEvent(kind::kTakenOver, NodeName(), std::string(core.ended->message())));
  if (absl::Status status = core.journal.Commit(batch); !status.ok()) LogError(std::string(status.message()));
}

}  // namespace

absl::Status LoadTerm(Core& core) {
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<TermRecord> terms, core.store.LoadTerms());
  const Term kept = OwnOf(terms), shown = ShownBefore(core);
  core.term = shown.number > kept.number ? shown : kept;
  // The first one has no other id than this, so that a store that was put back from before it was kept has the same.
  if (core.term.number == 0) core.term = {1, Sha256Hex(core.store.mark().store_id).substr(0, kIdDigits)};
  if (core.term == kept) return absl::OkStatus();
  if (kept.number > 0) LogError(absl::StrCat("the store knows ", ToText(kept), " alone, its certificate ", ToText(shown)));
  Batch batch;
  batch.terms.push_back({core.term, true});
  return core.journal.Commit(batch);
}

absl::Status CheckAlone(Core& core) {
  if (!WorkersUseTls(core.config)) return absl::OkStatus();
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<TermRecord> terms, core.store.LoadTerms());
  const Term own = OwnOf(terms);
  for (const TermRecord& record : terms) {
    if (!record.own && record.term.number > own.number) return TakenOver(own, "a certificate that it has seen", record.term);
  }
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<AuthorityRecord> authorities, core.store.LoadAuthorities());
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<MemberRecord> members, core.store.LoadMembers());
  if (own.number == 0 || authorities.empty()) return absl::OkStatus();
  MOTLEY_ASSIGN_OR_RETURN(const ClusterAuthority authority, ClusterAuthority::FromRecords(authorities));
  const auto [address, term] = Highest(authority, LookAtCertificates(Addresses(members), kPatience));
  if (address.empty() || Compare(term, own) == TermRelation::kLower) return absl::OkStatus();
  if (Compare(term, own) == TermRelation::kHigher) {
    core.term = own;
    EndFor(core, address, term);
    return *core.ended;
  }
  return absl::AbortedError(absl::StrCat("a coordinator of the same number runs at ", address, ": it shows ", ToText(term),
                                         ", this one has ", ToText(own), ". Stop it first, if it is not to go on. ", kHowBack));
}

absl::Status MeetTerm(Core& core, const NodeDescription& node) {
  if (node.term_certificate.empty() || !core.authority || core.term.number == 0) return absl::OkStatus();
  const auto shown = Certificate::FromPem(node.term_certificate);
  const auto term = shown.ok() ? TermOf(shown->front()) : shown.status();
  if (!term.ok() || core.authority->NumberOf(node.term_certificate) == 0) {
    // Of an authority from before, say. What nobody signed for ends nobody.
    core.CountForeign(node.name, kHelloTerm, "a term with a certificate that no authority of the cluster signed");
    return absl::OkStatus();
  }
  switch (Compare(*term, core.term)) {
    case TermRelation::kSame:
    case TermRelation::kLower:
      return absl::OkStatus();
    case TermRelation::kHigher:
      EndFor(core, absl::StrCat("node ", node.name.value()), *term);
      return absl::UnavailableError(core.ended->message());
    case TermRelation::kRival:
      return absl::UnavailableError(absl::StrCat("node ", node.name.value(),
                                                 " follows another coordinator of the same number: ", ToText(*term),
                                                 ", this one has ", ToText(core.term), ". Whoever was first counts. ", kHowBack));
  }
  return absl::OkStatus();
}

void NoteCoordinators(Core& core, const NodeDescription& node) {
  const auto known = core.state.members.find(node.name);
  if (known == core.state.members.end()) return;
  std::vector<std::string> addresses;
  for (const std::string& address : node.coordinators) {
    if (addresses.size() < kMostCoordinators && address.size() <= kLongestAddress &&
        ParseHostPort("worker.coordinator", address, 1).ok())
      addresses.push_back(address);
  }
  if (known->second.coordinators == addresses) return;
  Batch batch;
  batch.members.push_back(known->second);
  batch.members[0].coordinators = std::move(addresses);
  if (absl::Status status = core.journal.Commit(batch); !status.ok())
    return LogError(absl::StrCat("where node ", node.name.value(),
                                 " looks for its coordinator could not be stored: ", std::string(status.message())));
  known->second = batch.members[0];
}

void AskOthers(Core& core) {
  if (core.others.asking || core.stopping || core.ended || !WorkersUseTls(core.config) || !core.authority) return;
  std::vector<MemberRecord> members;
  for (const auto& [name, member] : core.state.members) members.push_back(member);
  std::vector<std::string> addresses = Addresses(members);
  if (addresses.empty()) return;
  core.others.asking = true;
  const auto shown = std::make_shared<std::vector<ShownCertificate>>();
  core.executor.RunApart([shown, addresses = std::move(addresses)] { *shown = LookAtCertificates(addresses, kPatience); },
                         [&core, shown] {
                           core.others.asking = false;
                           MeetOthers(core, *shown);
                         });
}

void MeetOthers(Core& core, const std::vector<ShownCertificate>& shown) {
  if (!core.authority) return;
  std::vector<ShownCertificate> others = shown;
  std::erase_if(others, [&](const ShownCertificate& one) {
    const auto term = TermOf(one.certificate);
    return term.ok() && *term == core.term;  // itself
  });
  const auto [address, term] = Highest(*core.authority, others);
  if (address.empty() || Compare(term, core.term) == TermRelation::kLower) return;
  if (Compare(term, core.term) == TermRelation::kHigher) return EndFor(core, address, term);
  const std::string said =
      absl::StrCat("another coordinator of the same number runs at ", address, ": it shows ", ToText(term), ", this one has ",
                   ToText(core.term), "; each keeps the nodes that met it first. Stop one of both. ", kHowBack);
  if (std::exchange(core.state.rival, said) != said) core.Emit(NodeEvent(kind::kRivalCoordinator, NodeName(), said));
}

}  // namespace motley::coordinator
