#include "worker/engine/nccl/nccl_library.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/device/transport_choice.h"
#include "worker/engine/nccl/verbs_ports.h"

namespace motley::engine {
namespace {

std::string Remedy() {
  return absl::StrCat("NCCL ", NcclVersionText(kOldestNccl),
                      " or later is in the package nvidia-nccl-cu13 (CUDA 12: nvidia-nccl-cu12) of PyPI and in libnccl2 of "
                      "NVIDIA's distribution packages");
}

std::string LookedIn(const std::string& name) {
  if (name.find('/') != std::string::npos) return absl::StrCat("'", name, "'");
  const char* folders = std::getenv("LD_LIBRARY_PATH");
  return absl::StrCat("'", name, "' in the program's own folders, LD_LIBRARY_PATH (", folders == nullptr ? "not set" : folders,
                      ") and the system's library folders");
}

std::string PathOf(void* library, const std::string& name) {
  const link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr || *map->l_name == '\0')
    return name;
  return map->l_name;
}

// Looks one function after another up and keeps the names of those that are not there.
struct Symbols {
  void* library;
  std::vector<std::string> missing{};

  template <typename Function>
  void Find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) missing.push_back(name);
  }
};

std::vector<std::string> Fill(void* library, NcclApi& api) {
  Symbols symbols{library};
  symbols.Find("ncclGetVersion", api.ncclGetVersion);
  symbols.Find("ncclGetUniqueId", api.ncclGetUniqueId);
  symbols.Find("ncclCommInitRankConfig", api.ncclCommInitRankConfig);
  symbols.Find("ncclCommFinalize", api.ncclCommFinalize);
  symbols.Find("ncclCommDestroy", api.ncclCommDestroy);
  symbols.Find("ncclCommAbort", api.ncclCommAbort);
  symbols.Find("ncclCommGetAsyncError", api.ncclCommGetAsyncError);
  symbols.Find("ncclGetErrorString", api.ncclGetErrorString);
  symbols.Find("ncclGetLastError", api.ncclGetLastError);
  symbols.Find("ncclGroupStart", api.ncclGroupStart);
  symbols.Find("ncclGroupEnd", api.ncclGroupEnd);
  symbols.Find("ncclBroadcast", api.ncclBroadcast);
  symbols.Find("ncclReduce", api.ncclReduce);
  symbols.Find("ncclAllGather", api.ncclAllGather);
  symbols.Find("ncclReduceScatter", api.ncclReduceScatter);
  symbols.Find("ncclAllReduce", api.ncclAllReduce);
  symbols.Find("ncclSend", api.ncclSend);
  symbols.Find("ncclRecv", api.ncclRecv);
  return symbols.missing;
}

// The interface that has this address; empty: none has.
std::string InterfaceOf(const std::string& address) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  std::string found;
  for (const ifaddrs* one = all; one != nullptr && found.empty(); one = one->ifa_next) {
    char text[INET6_ADDRSTRLEN] = "";
    if (one->ifa_addr == nullptr) continue;
    if (one->ifa_addr->sa_family == AF_INET) {
      inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof(text));
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr, text, sizeof(text));
    }
    if (address == text) found = one->ifa_name;
  }
  freeifaddrs(all);
  return found;
}

}  // namespace

absl::StatusOr<NcclLibrary> OpenNccl(const std::string& name) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("NCCL cannot be opened: looked for ", LookedIn(name), ": ", dlerror(), ". ", Remedy()));
  }
  NcclLibrary opened{.path = PathOf(library, name)};
  const std::vector<std::string> missing = Fill(library, opened.api);
  const auto refused = [&](const std::string& why) {
    return absl::FailedPreconditionError(absl::StrCat("NCCL at ", opened.path, " ", why, ". ", Remedy()));
  };
  if (opened.api.ncclGetVersion == nullptr) return refused("has no function ncclGetVersion: no NCCL, or one before 2.3");
  const ncclResult_t result = opened.api.ncclGetVersion(&opened.version);
  if (result != ncclSuccess || opened.version <= 0) {
    return refused(absl::StrCat("does not say its version (ncclGetVersion: result ", static_cast<int>(result), ")"));
  }
  if (opened.version < kOldestNccl) return refused(absl::StrCat("is ", NcclVersionText(opened.version), ": too old"));
  if (!missing.empty()) {
    return refused(
        absl::StrCat("says that it is ", NcclVersionText(opened.version), " but lacks ", absl::StrJoin(missing, ", ")));
  }
  return opened;
}

absl::Status CheckNcclMakesIds(const NcclLibrary& nccl) {
  ncclUniqueId id;
  const ncclResult_t result = nccl.api.ncclGetUniqueId(&id);
  if (result == ncclSuccess) return absl::OkStatus();
  ifaddrs* interfaces = nullptr;
  const bool lists = getifaddrs(&interfaces) == 0;
  const std::string why = lists ? "" : absl::StrCat(": the network interfaces cannot be listed (", std::strerror(errno), ")");
  if (lists) freeifaddrs(interfaces);
  return absl::UnavailableError(
      absl::StrCat("NCCL at ", nccl.path, " can make no communicator: ", nccl.api.ncclGetErrorString(result), why,
                   lists ? "; NCCL_DEBUG=INFO makes it say why"
                         : "; a service needs AF_NETLINK in RestrictAddressFamilies, as motley-worker.service has it"));
}

void PrepareNcclEnvironment(const std::string& data_address) {
  constexpr int kKeepTheUsers = 0, kOurs = 1;
  setenv("NCCL_COMM_BLOCKING", "0", kOurs);
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "0", kOurs);
  setenv("NCCL_RUNTIME_CONNECT", "0", kOurs);
  setenv("NCCL_SET_STACK_SIZE", "1", kOurs);
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", kKeepTheUsers);
  const std::string interface = data_address.empty() ? "" : InterfaceOf(data_address);
  // "=": this one, not all whose names begin so.
  if (!interface.empty()) setenv("NCCL_SOCKET_IFNAME", absl::StrCat("=", interface).c_str(), kKeepTheUsers);
  const std::string ports = VerbsPortsToLeaveOut("/sys/class/infiniband", AddressedInterfaces());
  if (!ports.empty()) setenv("NCCL_IB_HCA", ports.c_str(), kKeepTheUsers);
}

}  // namespace motley::engine
