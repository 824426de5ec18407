#include "worker/engine/transport/nccl_mesh.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/fault.h"
#include "common/base/some_names.h"
#include "common/base/status_macros.h"
#include "common/session/rendezvous_key.h"
#include "worker/engine/transport/nccl_first_calls.h"

namespace motley::engine {
namespace {

constexpr int kMostCtasOfNccl = 32;
// A hand-over's receive sits on the card from the step's begin until its sender comes, and each channel has buffers of its own.
// Over NVLink NCCL would take as many channels as a card may give; 8 of them (about 20 GB/s each) are enough.
constexpr int kMostCtasOfPair = 8;
constexpr int kFirstWithGroupedAborts = 22200;

// A group or an ordered pair that this rank is in.
struct Circle {
  enum class Kind { kGroup, kTo, kFrom };
  Kind kind;
  int key;            // of the group, or the peer
  std::string label;  // "group-3", "hand-over-0-5"
  std::vector<int> members;
};

// In the order in which all ranks make theirs: groups by their numbers, then pairs by sender and receiver.
std::vector<Circle> CirclesOf(const CommunicatorOptions& options) {
  std::vector<Circle> circles;
  for (int g = 0; g < static_cast<int>(options.groups.size()); ++g) {
    const std::vector<int>& members = options.groups[g];
    if (std::count(members.begin(), members.end(), options.rank) == 0) continue;
    circles.push_back({Circle::Kind::kGroup, g, absl::StrCat("group-", g), members});
  }
  const auto add_pair = [&](Circle::Kind kind, int peer, int from, int to) {
    circles.push_back({kind, peer, absl::StrCat("hand-over-", from, "-", to), {from, to}});
  };
  for (const int from : options.receives_from) {
    if (from < options.rank) add_pair(Circle::Kind::kFrom, from, from, options.rank);
  }
  for (const int to : options.sends_to) add_pair(Circle::Kind::kTo, to, options.rank, to);
  for (const int from : options.receives_from) {
    if (from > options.rank) add_pair(Circle::Kind::kFrom, from, from, options.rank);
  }
  return circles;
}

std::string NameOf(const Circle& circle, const std::vector<DeviceId>& devices) {
  std::vector<std::string> names;
  for (const int r : circle.members) names.push_back(devices[r].value());
  if (circle.kind == Circle::Kind::kGroup) return absl::StrCat("group ", circle.key, " (", SomeNames(names), ")");
  return absl::StrCat("hand-overs from ", names[0], " to ", names[1]);
}

// The first member makes the id, the others read it among the epoch's rendezvous keys.
absl::StatusOr<ncclUniqueId> AgreeOnId(const CommunicatorOptions& options, const Circle& circle, RankHost& host) {
  const std::string key = RendezvousKey(options.key_prefix, "nccl", circle.members[0], circle.label);
  const NcclApi& api = *options.nccl.api;
  ncclUniqueId id{};
  const std::string& first = options.devices[circle.members[0]].value();
  if (circle.members[0] == options.rank) {
    const ncclResult_t result = api.ncclGetUniqueId(&id);
    if (result != ncclSuccess) {
      return absl::UnavailableError(
          absl::StrCat("NCCL gives no id for ", NameOf(circle, options.devices), ": ", api.ncclGetErrorString(result)));
    }
    MOTLEY_RETURN_IF_ERROR(host.KvSet(key, absl::BytesToHexString({id.internal, sizeof(id.internal)})));
    return id;
  }
  const absl::StatusOr<std::string> text = host.KvGet(key, NcclConnectLimit(options));
  if (absl::IsCancelled(text.status())) return text.status();
  if (!text.ok()) {
    return WithFault(absl::UnavailableError(absl::StrCat("no NCCL id of ", NameOf(circle, options.devices), " came from ", first,
                                                         ": ", text.status().message())),
                     Fault::kPeer);
  }
  const std::string bytes = absl::HexStringToBytes(*text);
  if (bytes.size() != sizeof(id.internal)) {
    return absl::InternalError(absl::StrCat("rendezvous: ", first, " gave '", *text, "' as the NCCL id of ", circle.label));
  }
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

// A kernel that waits for its peer keeps what it has of the card. Each lane of the weakest member has its part, so a lane's
// kernel finds room whatever the others wait for. Copies to and from the host take none. The same on all members.
int MostCtas(const Circle& circle, const std::vector<Introduction>& introductions) {
  int fewest = std::numeric_limits<int>::max();
  for (const int r : circle.members) fewest = std::min(fewest, introductions[r].multiprocessors);
  if (fewest == 0) return 0;
  constexpr int kLanesWithKernels = kNumLanes - 1;
  const int most = std::clamp(fewest / kLanesWithKernels, 1, kMostCtasOfNccl);
  if (circle.kind == Circle::Kind::kGroup) return most;
  // Of a pair's channels NCCL makes a power of two, the next one above.
  return std::min(kMostCtasOfPair, static_cast<int>(std::bit_floor(static_cast<unsigned>(most))));
}

absl::StatusOr<std::unique_ptr<NcclComm>> Make(const CommunicatorOptions& options, const Circle& circle, int most_ctas,
                                               absl::Mutex& turn, const NcclPatience& patience, RankHost& host) {
  const Lane lane = circle.kind == Circle::Kind::kGroup ? Lane::kCollective
                    : circle.kind == Circle::Kind::kTo  ? Lane::kSend
                                                        : Lane::kReceive;
  void* const stream = options.streams[static_cast<size_t>(lane)];
  if (stream == nullptr || options.memory == nullptr) {
    return absl::InternalError(absl::StrCat("NCCL of ", circle.label, " has no stream or no device memory"));
  }
  NcclMembership membership;
  membership.label = absl::StrCat(options.key_prefix, circle.label);
  membership.name = NameOf(circle, options.devices);
  membership.ranks = static_cast<int>(circle.members.size());
  membership.rank =
      static_cast<int>(std::find(circle.members.begin(), circle.members.end(), options.rank) - circle.members.begin());
  membership.most_ctas = most_ctas;
  MOTLEY_ASSIGN_OR_RETURN(membership.id, AgreeOnId(options, circle, host));
  const int ranks = membership.ranks, mine = membership.rank;
  MOTLEY_ASSIGN_OR_RETURN(std::unique_ptr<NcclComm> comm,
                          NcclComm::Make(*options.nccl.api, std::move(membership), turn, patience));
  const bool sends = circle.kind == Circle::Kind::kTo;
  const std::vector<NcclFirstCall> calls =
      circle.kind == Circle::Kind::kGroup
          ? FirstCollectives(*options.nccl.api, options.nccl.types, mine, stream)
          : FirstByte(*options.nccl.api, sends, sends ? NcclMesh::kReceiver : NcclMesh::kSender, stream);
  // An error's comm is aborted: its end would wait for a peer.
  if (absl::Status ran = RunFirst(calls, *comm, ranks, *options.memory, stream, patience); !ran.ok()) {
    comm->Abort();
    return ran;
  }
  return comm;
}

}  // namespace

absl::Duration NcclConnectLimit(const CommunicatorOptions& options) {
  constexpr double kShareOfEach = 1.0 / 30;  // 2 s of a limit of 60 s, where one takes 0.5 to 1.5 s
  const size_t others = options.devices.empty() ? 0 : options.devices.size() - 1;
  return options.nccl_timeout * (1 + kShareOfEach * static_cast<double>(options.groups.size() + 2 * others));
}

absl::StatusOr<std::unique_ptr<NcclMesh>> NcclMesh::Connect(const CommunicatorOptions& options,
                                                            const std::vector<Introduction>& introductions,
                                                            const std::function<absl::Status()>& check, RankHost& host) {
  std::vector<Circle> by_nccl;
  std::vector<std::string> by_tcp;
  for (Circle& circle : CirclesOf(options)) {
    const TransportChoice choice = ChooseTransport(MembersOf(circle.members, options.devices, introductions));
    if (choice.transport == Transport::kNccl) by_nccl.push_back(circle);
    if (choice.why_not_nccl.empty()) continue;
    const std::string what = absl::StrCat(NameOf(circle, options.devices), ": ", choice.why_not_nccl);
    if (options.nccl.required) {
      return absl::FailedPreconditionError(absl::StrCat("the job asks for NCCL, which cannot serve ", what,
                                                        ". Give all their nodes one NCCL, or let the job's transport be chosen"));
    }
    // One of them says it for all: the first that knows of it.
    const auto has_nccl = [&](int r) { return introductions[r].nccl_version > 0; };
    if (*std::find_if(circle.members.begin(), circle.members.end(), has_nccl) == options.rank) by_tcp.push_back(what);
  }
  if (!by_tcp.empty()) host.OnLog(absl::StrCat("goes by TCP and not by NCCL: ", absl::StrJoin(by_tcp, "; ")));

  const NcclPatience patience{NcclConnectLimit(options), [&]() -> absl::Status {
                                if (options.stopped && options.stopped()) return absl::CancelledError("stopped");
                                return check();
                              }};
  std::unique_ptr<NcclMesh> mesh(new NcclMesh(*options.nccl.api));
  for (const Circle& circle : by_nccl) {
    absl::StatusOr<std::unique_ptr<NcclComm>> made =
        Make(options, circle, MostCtas(circle, introductions), mesh->turn_, patience, host);
    if (!made.ok()) {
      // Nobody waits for the others' orderly end.
      mesh->Abort();
      return made.status();
    }
    Comms& comms = circle.kind == Circle::Kind::kGroup ? mesh->groups_
                   : circle.kind == Circle::Kind::kTo  ? mesh->to_
                                                       : mesh->from_;
    NcclComm* const comm = mesh->all_.emplace_back(*std::move(made)).get();
    comms[circle.key] = comm;
    if (!options.nccl.new_links) continue;
    const auto links = options.nccl.new_links(/*is_pair=*/circle.kind != Circle::Kind::kGroup);
    if (links) mesh->links_.emplace(comm, *links);
  }
  return mesh;
}

NcclMesh::~NcclMesh() {
  for (const auto& comm : all_) comm->BeginFinalize();
  for (auto& comm : all_) comm.reset();
}

absl::Status NcclMesh::Health() {
  for (const auto& comm : all_) MOTLEY_RETURN_IF_ERROR(comm->Health());
  return absl::OkStatus();
}

void NcclMesh::Abort() {
  std::vector<NcclComm*> due;
  for (const auto& comm : all_) {
    if (comm->MarkOver()) due.push_back(comm.get());
  }
  int version = 0;
  if (api_.ncclGetVersion(&version) == ncclSuccess && version >= kFirstWithGroupedAborts) {
    api_.ncclGroupStart();
    for (NcclComm* const comm : due) comm->TakeAway();
    api_.ncclGroupEnd();
    return;
  }
  std::vector<std::thread> aborting;
  for (NcclComm* const comm : due) aborting.emplace_back([comm] { comm->TakeAway(); });
  for (std::thread& thread : aborting) thread.join();
}

}  // namespace motley::engine
