#include "worker/engine/transport/introduction.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"
#include "common/session/rank_build.h"
#include "common/session/rendezvous_key.h"
#include "worker/engine/base/monotonic.h"

namespace motley::engine {
namespace {

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id.empty() ? "unknown" : id;
}

// The build comes first and ends with a space, so that another build's introduction is understood as far as that.
absl::Status CheckBuild(const DeviceId& peer, const std::string& text, const DeviceId& self) {
  const std::string build = text.substr(0, text.find(' '));
  if (build == RankBuild()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the rank of ", peer.value(), " is of build '", build, "' and that of ", self.value(), " of '", RankBuild(),
      "' (build/program version/order of arrays): compile every node's ranks from the same sources (./run build; for another "
      "libtorch ./run setup --libtorch VERSION)"));
}

// Both ends of a connection must mean the same, and nobody gives way: a network could ask for that, too.
absl::Status CheckAuthentication(const CommunicatorOptions& options, int peer, DataAuthentication theirs) {
  const std::string &here = options.data_addresses[options.rank], &there = options.data_addresses[peer];
  if (Authenticates(theirs, there, here) == Authenticates(options.authentication, here, there)) return absl::OkStatus();
  const auto has = [](const DeviceId& device, DataAuthentication value) {
    return absl::StrCat(device.value(), " at worker.data_authentication = '", std::string(DataAuthenticationName(value)), "'");
  };
  return absl::FailedPreconditionError(absl::StrCat("the ranks would not authenticate the same messages: that of ",
                                                    has(options.devices[peer], theirs), ", that of ",
                                                    has(options.devices[options.rank], options.authentication),
                                                    ": give the key one value on all nodes (docs/use/security.md)"));
}

// "BUILD BOOT_ID DEVICE_RATE NODE_RATE PORT SECRET NCCL_VERSION MULTIPROCESSORS AUTHENTICATION CARD"; CARD may be empty.
std::string TextOf(const Introduction& own) {
  return absl::StrCat(RankBuild(), " ", own.boot_id, " ", own.rates.device_bytes_per_second, " ", own.rates.node_bytes_per_second,
                      " ", own.point.port, " ", absl::BytesToHexString(own.point.secret), " ", own.nccl_version, " ",
                      own.multiprocessors, " ", std::string(DataAuthenticationName(own.authentication)), " ", own.card);
}

bool Parse(const std::string& text, Introduction& introduction) {
  const std::vector<std::string> parts = absl::StrSplit(text, ' ');
  if (parts.size() != 10 || !absl::SimpleAtod(parts[2], &introduction.rates.device_bytes_per_second) ||
      !absl::SimpleAtod(parts[3], &introduction.rates.node_bytes_per_second) ||
      !absl::SimpleAtoi(parts[4], &introduction.point.port) || !absl::SimpleAtoi(parts[6], &introduction.nccl_version) ||
      !absl::SimpleAtoi(parts[7], &introduction.multiprocessors)) {
    return false;
  }
  const std::optional<DataAuthentication> authentication = ParseDataAuthentication(parts[8]);
  if (!authentication) return false;
  introduction.authentication = *authentication;
  introduction.boot_id = parts[1];
  introduction.point.secret = absl::HexStringToBytes(parts[5]);
  introduction.card = parts[9];
  return introduction.point.secret.size() == kSecretBytes;
}

absl::StatusOr<int> VersionOfNccl(const NcclApi* api) {
  int version = 0;
  if (api != nullptr && api->ncclGetVersion(&version) != ncclSuccess) {
    return absl::FailedPreconditionError("NCCL does not say its version");
  }
  return version;
}

}  // namespace

absl::StatusOr<std::vector<Introduction>> Introduce(const CommunicatorOptions& options, const MeetingPoint& point,
                                                    RankHost& host) {
  const int world = static_cast<int>(options.devices.size());
  Introduction own{BootId(), {}, point};
  own.rates = {options.device.link_bytes_per_second, options.device.node_link_bytes_per_second};
  own.card = options.device.card.uuid;
  own.authentication = options.authentication;
  own.multiprocessors = options.nccl.multiprocessors;
  MOTLEY_ASSIGN_OR_RETURN(own.nccl_version, VersionOfNccl(options.nccl.api));
  const auto key = [&](int rank) { return RendezvousKey(options.key_prefix, "peer", rank); };
  MOTLEY_RETURN_IF_ERROR(host.KvSet(key(options.rank), TextOf(own)));
  const absl::Duration deadline = absl::Nanoseconds(MonotonicNs()) + options.introduction_timeout;
  std::vector<Introduction> all(world);
  for (int r = 0; r < world; ++r) {
    const absl::Duration left = std::max(absl::ZeroDuration(), deadline - absl::Nanoseconds(MonotonicNs()));
    const absl::StatusOr<std::string> text = host.KvGet(key(r), left);
    if (absl::IsCancelled(text.status())) return text.status();
    if (!text.ok()) {
      return WithFault(absl::UnavailableError(absl::StrCat(
                           options.devices[r].value(), " did not come to the meeting of the ranks: ", text.status().message())),
                       Fault::kPeer);
    }
    MOTLEY_RETURN_IF_ERROR(CheckBuild(options.devices[r], *text, options.devices[options.rank]));
    if (!Parse(*text, all[r])) {
      return absl::InternalError(absl::StrCat("rendezvous: ", options.devices[r].value(), " introduced itself as '", *text, "'"));
    }
    MOTLEY_RETURN_IF_ERROR(CheckAuthentication(options, r, all[r].authentication));
    all[r].point.address = options.data_addresses[r];
  }
  return all;
}

std::vector<TransportMember> MembersOf(const std::vector<int>& ranks, const std::vector<DeviceId>& devices,
                                       const std::vector<Introduction>& all) {
  std::vector<TransportMember> members;
  for (const int r : ranks) members.push_back({devices[r].value(), all[r].nccl_version, all[r].card});
  return members;
}

}  // namespace motley::engine
