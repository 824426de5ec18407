#include "coordinator/members/joining.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/duration_text.h"
#include "common/base/logging.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "coordinator/members/registry.h"
#include "coordinator/members/term.h"
#include "coordinator/state/joining.h"

namespace motley::coordinator {
namespace {

constexpr char kTokenThing[] = "token/";                       // of counted time
constexpr absl::Duration kBetweenRenewals = absl::Seconds(5);  // of one member: a signature and a commit each

absl::Time WallNow(const Core& core) { return absl::FromUnixMillis(core.journal.UnixMs()); }

// A listing must know who may come back, also when it has not since the start.
void ShowMember(Core& core, const NodeName& name) {
  NodeRecord& node = core.state.nodes[name];
  if (std::exchange(node.forgotten, false)) node.reason = "a member again; it has not come yet";
  if (node.connected || !node.description.name.empty()) return;
  node.description.name = name;
  node.reason = "a member; not seen since the coordinator was started";
  node.last_seen = core.clock.Now();
}

// The files first: what the rows say must be believed by who comes. Files that are ahead of a commit that failed are written
// again (KeepOwnFiles).
absl::Status ChangeAuthorities(Core& core, std::vector<AuthorityRecord> records, Batch batch) {
  MOTLEY_ASSIGN_OR_RETURN(ClusterAuthority changed, ClusterAuthority::FromRecords(records));
  MOTLEY_RETURN_IF_ERROR(changed.WriteFiles(TlsFolder(core.config), core.term, WallNow(core), /*with_key=*/false));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  core.authority = std::move(changed);
  for (const auto& [name, member] : core.state.members) TellAuthorities(core, name);
  return absl::OkStatus();
}

std::vector<std::string> NotRenewed(const Core& core) {
  std::vector<std::string> names;
  for (const auto& [name, member] : core.state.members) {
    if (member.authority != core.authority->newest_number()) names.push_back(name.value());
  }
  return names;
}

absl::Status SaveMember(Core& core, const MemberRecord& member) {
  Batch batch;
  batch.members.push_back(member);
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  core.state.members[member.node] = member;
  return absl::OkStatus();
}

absl::StatusOr<IssuedCertificate> Issue(Core& core, MemberRecord& member, std::string_view request) {
  const absl::Time now = WallNow(core);
  MOTLEY_ASSIGN_OR_RETURN(const Certificate certificate,
                          core.authority->newest().IssueNode(member.node, request, now, core.config.certificate_lifetime));
  member.key_hash = certificate.PublicHash();
  member.until_unix_ms = absl::ToUnixMillis(certificate.not_after());
  return IssuedCertificate{certificate.ToPem(), core.authority->Certificates()};
}

absl::Duration WallAge(const Core& core, const TokenRecord& token) {
  return std::max(absl::ZeroDuration(), absl::Milliseconds(core.journal.UnixMs() - token.made_unix_ms));
}

std::map<std::string, absl::Duration> TokenAges(Core& core) {
  std::map<std::string, absl::Duration> ages;
  for (const auto& [id, token] : core.state.tokens) ages[id] = TokenAge(core, token);
  return ages;
}

// They may have been good for longer than they were given while the machine was off.
void EndTokensOfUnknownAge(Core& core) {
  if (core.state.tokens.empty()) return;
  Batch batch;
  for (const auto& [id, token] : core.state.tokens) batch.ended_tokens.push_back(id);
  batch.events.push_back(NodeEvent(
      kind::kTokenRevoked, NodeName(),
      absl::StrCat(Count(batch.ended_tokens.size(), "token is", "tokens are"),
                   " ended: the machine was started anew with its clock before the time at which the coordinator ran last, so ",
                   "nobody knows how old they are; see that its clock is right, and make new ones (motley node token)")));
  core.state.tokens.clear();
  if (absl::Status status = core.journal.Commit(batch); !status.ok()) LogError(std::string(status.message()));
}

absl::Status HasAuthority(const Core& core) {
  if (core.authority) return absl::OkStatus();
  return absl::FailedPreconditionError("the cluster has no certificate authority; see the coordinator's log");
}

}  // namespace

std::string TlsFolder(const Config& config) { return config.state_folder + "/tls"; }

absl::Status LoadMembers(Core& core) {
  MOTLEY_ASSIGN_OR_RETURN(std::vector<AuthorityRecord> authorities, core.store.LoadAuthorities());
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<TokenRecord> tokens, core.store.LoadTokens());
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<MemberRecord> members, core.store.LoadMembers());
  if (authorities.empty()) {
    Batch batch;
    MOTLEY_ASSIGN_OR_RETURN(batch.authorities.emplace_back(), NewAuthority(1, WallNow(core)));
    MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
    authorities = batch.authorities;
    if (!members.empty()) LogError("the cluster's authority was lost: every node must be forgotten and join again");
  }
  MOTLEY_ASSIGN_OR_RETURN(core.authority, ClusterAuthority::FromRecords(authorities));
  MOTLEY_RETURN_IF_ERROR(LoadTerm(core));
  for (const TokenRecord& token : tokens) core.state.tokens[token.id] = token;
  if (core.counted.wall_went_back()) EndTokensOfUnknownAge(core);
  for (const auto& [id, token] : core.state.tokens) {
    if (core.counted.has_gap()) core.counted.IsAtLeast(kTokenThing + id, WallAge(core, token));
  }
  for (const MemberRecord& member : members) {
    core.state.members[member.node] = member;
    ShowMember(core, member.node);
  }
  // Not at every start: a full disk would keep a coordinator from starting whose files are well.
  const std::string folder = TlsFolder(core.config);
  if (!WorkersUseTls(core.config) || core.authority->FilesFit(folder, core.term, WallNow(core))) return absl::OkStatus();
  return core.authority->WriteFiles(folder, core.term, WallNow(core), /*with_key=*/true);
}

absl::StatusOr<JoinToken> MakeToken(Core& core, absl::Duration life, bool reusable) {
  MOTLEY_RETURN_IF_ERROR(HasAuthority(core));
  if (!WorkersUseTls(core.config)) {
    return absl::FailedPreconditionError(
        absl::StrCat("no machine could join: ",
                     core.config.workers_listen.empty() ? "there is no workers.listen, and this machine's own "
                                                        : absl::StrCat("workers.listen = ", Quoted(core.config.workers_listen),
                                                                       " is reached from this machine alone, whose "),
                     "workers need no token. Set [workers] listen in the coordinator's configuration to an address that the "
                     "others reach, say ",
                     "\"10.0.0.1:7073\", and start it again"));
  }
  if (life < absl::Seconds(1) || life > kLongestTokenLife) {
    return absl::InvalidArgumentError(absl::StrCat("ttl must be from 1 second to 90 days, got ", DurationText(life)));
  }
  Batch batch;
  batch.ended_tokens = TokensToEnd(core.state, TokenAges(core));
  const auto open = std::count_if(core.state.tokens.begin(), core.state.tokens.end(), [&](const auto& entry) {
    const TokenRecord& each = entry.second;
    return (each.reusable || each.joins == 0) && !IsExpired(each, core.journal.UnixMs(), TokenAge(core, each));
  });
  if (open >= static_cast<std::ptrdiff_t>(kMostTokens)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "there are ", kMostTokens, " open tokens; revoke some (motley node revoke ID) or wait until they are expired"));
  }
  MOTLEY_ASSIGN_OR_RETURN(const JoinToken token, MakeJoinToken(core.authority->oldest().certificate()));
  const int64_t now = core.journal.UnixMs();
  batch.tokens.push_back({token.id, HashOfSecret(token), reusable, 0, now, now + absl::ToInt64Milliseconds(life)});
  batch.events.push_back(NodeEvent(
      kind::kTokenMade, NodeName(),
      absl::StrCat("token ", token.id, " was made: ", reusable ? "reusable" : "for one node", ", for ", DurationText(life))));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  for (const std::string& id : batch.ended_tokens) core.state.tokens.erase(id);
  core.state.tokens[token.id] = batch.tokens[0];
  (void)TokenAge(core, batch.tokens[0]);
  core.counted.Keep(kTokenThing, [&](const std::string& thing) {
    return core.state.tokens.contains(thing.substr(std::string_view(kTokenThing).size()));
  });
  if (const absl::Status saved = core.counted.Save(); !saved.ok()) LogError(std::string(saved.message()));
  return token;
}

absl::Duration TokenAge(Core& core, const TokenRecord& token) {
  return core.counted.AgeOf(kTokenThing + token.id, WallAge(core, token));
}

absl::Status RevokeToken(Core& core, const std::string& id) {
  if (!core.state.tokens.contains(id)) {
    return absl::NotFoundError(absl::StrCat("there is no token ", Quoted(id), "; 'motley node tokens' lists them"));
  }
  Batch batch;
  batch.ended_tokens.push_back(id);
  batch.events.push_back(NodeEvent(kind::kTokenRevoked, NodeName(), absl::StrCat("token ", id, " was revoked")));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  core.state.tokens.erase(id);
  return absl::OkStatus();
}

absl::StatusOr<IssuedCertificate> JoinNode(Core& core, std::string_view token_text, const NodeName& node,
                                           std::string_view request, const std::string& host) {
  MOTLEY_RETURN_IF_ERROR(HasAuthority(core));
  MOTLEY_ASSIGN_OR_RETURN(const JoinToken token, ParseJoinToken(token_text));
  MOTLEY_ASSIGN_OR_RETURN(const std::string key_hash, KeyHashOfRequest(request));
  const int64_t now = core.journal.UnixMs();
  const auto shown = core.state.tokens.find(token.id);
  const absl::Duration age = shown == core.state.tokens.end() ? absl::ZeroDuration() : TokenAge(core, shown->second);
  MOTLEY_ASSIGN_OR_RETURN(const JoinDecision decision,
                          DecideJoin(core.state, {token.id, HashOfSecret(token), node, key_hash, now, age}));
  MemberRecord member;
  member.node = node, member.joined_unix_ms = now;
  member.authority = core.authority->newest_number();
  if (!decision.is_new) member = core.state.members.at(node);
  member.token = token.id;
  MOTLEY_ASSIGN_OR_RETURN(const IssuedCertificate issued, Issue(core, member, request));
  Batch batch;
  batch.tokens.push_back(decision.token);
  batch.members.push_back(member);
  if (decision.is_new) {
    batch.events.push_back(NodeEvent(kind::kMemberAdded, node,
                                     absl::StrCat("node ", node.value(), " at ", host, " became a member by token ", token.id)));
  }
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  core.state.tokens[token.id] = decision.token;
  core.state.members[node] = member;
  ShowMember(core, node);
  return issued;
}

absl::StatusOr<IssuedCertificate> RenewNode(Core& core, const NodeName& node, std::string_view request) {
  MOTLEY_RETURN_IF_ERROR(HasAuthority(core));
  const auto known = core.state.members.find(node);
  if (known == core.state.members.end()) return absl::PermissionDeniedError(absl::StrCat("node ", node.value(), " is no member"));
  MOTLEY_ASSIGN_OR_RETURN(const std::string key_hash, KeyHashOfRequest(request));
  if (key_hash != known->second.key_hash) {
    return absl::PermissionDeniedError(absl::StrCat("node ", node.value(), " asks for a certificate of another key than it has"));
  }
  Renewal& newest = core.renewals[node];
  if (newest.at && core.clock.Now() - *newest.at < kBetweenRenewals)
    return absl::ResourceExhaustedError("a certificate was given a moment ago");
  MemberRecord member = known->second;
  MOTLEY_ASSIGN_OR_RETURN(const IssuedCertificate issued, Issue(core, member, request));
  MOTLEY_RETURN_IF_ERROR(SaveMember(core, member));
  newest = {core.clock.Now(), Sha256Hex(issued.certificate), core.authority->newest_number()};
  return issued;
}

void NoteStored(Core& core, const NodeName& node, const std::string& certificate_hash) {
  const auto newest = core.renewals.find(node);
  const auto known = core.state.members.find(node);
  if (newest == core.renewals.end() || known == core.state.members.end() || newest->second.hash != certificate_hash) return;
  NoteAuthority(core, node, newest->second.authority);
}

void NoteAuthority(Core& core, const NodeName& node, int64_t authority) {
  const auto known = core.state.members.find(node);
  if (known == core.state.members.end() || known->second.authority == authority) return;
  MemberRecord member = known->second;
  member.authority = authority;
  if (absl::Status status = SaveMember(core, member); !status.ok())
    LogError(absl::StrCat("what certificate node ", node.value(), " has could not be stored: ", std::string(status.message())));
}

absl::Status ForgetNode(Core& core, const NodeName& node) {
  const auto known = core.state.nodes.find(node);
  const bool is_member = core.state.members.contains(node),
             is_listed = known != core.state.nodes.end() && !known->second.forgotten;
  if (!is_member && is_listed && known->second.connected) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", Quoted(node.value()),
                     " is no member and is there: it came over this machine's own socket; stop its "
                     "worker first"));
  }
  if (!is_member && !is_listed) {
    std::vector<std::string> names;
    for (const auto& [name, member] : core.state.members) names.push_back(name.value());
    return absl::NotFoundError(absl::StrCat("no member, and no node that is gone, is named ", Quoted(node.value()),
                                            "; members: ", names.empty() ? "none" : absl::StrJoin(names, ", ")));
  }
  Batch batch;
  if (is_member) batch.ended_members.push_back(node);
  batch.drains.push_back({node, false});
  batch.events.push_back(NodeEvent(
      kind::kMemberForgotten, node,
      absl::StrCat("node ", node.value(), " was forgotten", is_member ? ": it is no member any more" : "; it may come again")));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  core.state.members.erase(node);
  core.renewals.erase(node);
  if (const auto link = core.links.find(node); link != core.links.end()) {
    // Before the loss of the node, which would close it with words that invite to come again.
    link->second->Close(absl::PermissionDeniedError(absl::StrCat("node ", node.value(), " was forgotten by the user")));
    Disconnect(core, node, "forgotten by the user");
  }
  NodeRecord& record = core.state.nodes[node];
  record.forgotten = true;
  record.drained = false;
  record.reason = "forgotten by the user";
  return absl::OkStatus();
}

void TellAuthorities(Core& core, const NodeName& node) {
  if (core.authority && core.state.members.contains(node)) core.Send(node, AuthoritiesCommand{core.authority->Certificates()});
}

absl::Status RotateAuthority(Core& core) {
  MOTLEY_RETURN_IF_ERROR(HasAuthority(core));
  if (core.authority->changes()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the authority changes already; not renewed yet: ", absl::StrJoin(NotRenewed(core), ", "),
                     "; a node that does not come back is left behind with 'motley node forget'"));
  }
  Batch batch;
  const int64_t number = core.authority->newest_number() + 1;
  MOTLEY_ASSIGN_OR_RETURN(std::vector<AuthorityRecord> records, core.store.LoadAuthorities());
  MOTLEY_ASSIGN_OR_RETURN(batch.authorities.emplace_back(), NewAuthority(number, WallNow(core)));
  records.push_back(batch.authorities[0]);
  batch.events.push_back(NodeEvent(kind::kAuthorityChanges, NodeName(),
                                   absl::StrCat("authority ", number, " was made; the one before ends when all ",
                                                core.state.members.size(), " members have a certificate of the new one")));
  return ChangeAuthorities(core, std::move(records), std::move(batch));
}

void EndOldAuthority(Core& core) {
  if (!core.authority || !core.authority->changes() || !NotRenewed(core).empty()) return;
  absl::StatusOr<std::vector<AuthorityRecord>> records = core.store.LoadAuthorities();
  if (!records.ok()) return LogError(std::string(records.status().message()));
  records->erase(records->begin(), records->end() - 1);
  Batch batch;
  for (int64_t number = 1; number < core.authority->newest_number(); ++number) batch.ended_authorities.push_back(number);
  batch.events.push_back(NodeEvent(kind::kAuthorityChanged, NodeName(),
                                   absl::StrCat("authority ", core.authority->newest_number(), " is the only one now")));
  if (absl::Status status = ChangeAuthorities(core, *std::move(records), std::move(batch)); !status.ok()) {
    LogError(absl::StrCat("the old authority could not be ended: ", std::string(status.message())));
  }
}

void KeepOwnFiles(Core& core) {
  if (!core.authority || !WorkersUseTls(core.config)) return;
  const absl::Time now = WallNow(core);
  if (core.authority->FilesFit(TlsFolder(core.config), core.term, now)) return;
  const absl::Status status = core.authority->WriteFiles(TlsFolder(core.config), core.term, now, /*with_key=*/false);
  status.ok() ? LogInfo("the coordinator's certificate was renewed")
              : LogError(absl::StrCat("the coordinator's certificate could not be renewed: ", std::string(status.message())));
}

}  // namespace motley::coordinator
