#include "worker/engine/transport/introduction.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/monotonic.h"

namespace motley::engine {
namespace {

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id.empty() ? "unknown" : id;
}

// "BOOT_ID DEVICE_RATE NODE_RATE PORT SECRET"
std::string TextOf(const DeviceDescription& device, const MeetingPoint& point) {
  return absl::StrCat(BootId(), " ", device.link_bytes_per_second, " ", device.node_link_bytes_per_second, " ", point.port, " ",
                      absl::BytesToHexString(point.secret));
}

bool Parse(const std::string& text, Introduction& introduction) {
  const std::vector<std::string> parts = absl::StrSplit(text, ' ');
  if (parts.size() != 5 || !absl::SimpleAtod(parts[1], &introduction.rates.device_bytes_per_second) ||
      !absl::SimpleAtod(parts[2], &introduction.rates.node_bytes_per_second) ||
      !absl::SimpleAtoi(parts[3], &introduction.point.port)) {
    return false;
  }
  introduction.boot_id = parts[0];
  introduction.point.secret = absl::HexStringToBytes(parts[4]);
  return introduction.point.secret.size() == kSecretBytes;
}

}  // namespace

absl::StatusOr<std::vector<Introduction>> Introduce(const CommunicatorOptions& options, const MeetingPoint& point,
                                                    RankHost& host) {
  const int world = static_cast<int>(options.devices.size());
  const std::string base = absl::StrCat(options.key_prefix, "peer/");
  MOTLEY_RETURN_IF_ERROR(host.KvSet(absl::StrCat(base, options.rank), TextOf(options.device, point)));
  const absl::Duration deadline = absl::Nanoseconds(MonotonicNs()) + options.connect_timeout;
  std::vector<Introduction> all(world);
  for (int r = 0; r < world; ++r) {
    const absl::Duration left = std::max(absl::ZeroDuration(), deadline - absl::Nanoseconds(MonotonicNs()));
    const absl::StatusOr<std::string> text = host.KvGet(absl::StrCat(base, r), left);
    if (absl::IsCancelled(text.status())) return text.status();
    if (!text.ok()) {
      return WithFault(absl::UnavailableError(absl::StrCat(
                           options.devices[r].value(), " did not come to the meeting of the ranks: ", text.status().message())),
                       Fault::kPeer);
    }
    if (!Parse(*text, all[r])) {
      return absl::InternalError(absl::StrCat("rendezvous: ", options.devices[r].value(), " introduced itself as '", *text, "'"));
    }
    all[r].point.address = options.data_addresses[r];
  }
  return all;
}

}  // namespace motley::engine
