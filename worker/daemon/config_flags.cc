#include "worker/daemon/config_flags.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/written_path.h"

namespace motley::worker {
namespace {

constexpr char kUuidBegin[] = "GPU-";

bool IsIndex(const std::string& card) {
  return !card.empty() && std::all_of(card.begin(), card.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string CheckCard(const std::string& card) {
  int64_t index = 0;
  if (IsIndex(card) ? absl::SimpleAtoi(card, &index) : absl::StartsWithIgnoreCase(card, kUuidBegin)) return "";
  return absl::StrCat("'", card, "' is no card: 0, say, or GPU-8f6c, the beginning of what nvidia-smi -L says");
}

DeviceConfig Card(const std::string& which, size_t ordinal) {
  DeviceConfig device;
  device.kind = DeviceKind::kCuda;
  device.name = absl::StrCat("gpu", ordinal);
  int64_t index = 0;
  if (IsIndex(which) && absl::SimpleAtoi(which, &index)) {
    device.index = index;
  } else {
    device.uuid = which;
  }
  return device;
}

}  // namespace

void ConfigFlags::AddTo(CLI::App& app) {
  app.add_option("--node", node, "Name of this node, instead of worker.name");
  app.add_option(
      "--coordinator", coordinators,
      "host:port or unix:PATH, instead of worker.coordinator; repeated: other machines that may take the cluster over");
  app.add_option(
      "--data-address", data_address,
      "Numeric address for tensors, instead of worker.data_address; with --join the default is the way to the coordinator");
  app.add_option("--identity", identity, "Folder of key and certificate, instead of worker.identity");
  app.add_option("--root", roots, "A folder that jobs may read and write, instead of files.roots; may be repeated");
  app.add_option("--files", files, "Folder of this node's own disk for files of jobs, instead of files.local");
  auto* metrics_option = app.add_option("--metrics", metrics, "host:port of /metrics, instead of worker.metrics");
  app.add_flag("--no-metrics", no_metrics, "No metrics listener")->excludes(metrics_option);
  app.add_option("--cores", cores, "Cores of the host for CPU devices, instead of worker.cores");
  app.add_option("--stop-seconds", stop_seconds,
                 "How long ranks may take to save when told to end, instead of worker.stop_seconds");
  app.add_option("--rank-binary", rank_binary, "The rank's program, instead of worker.rank_binary");
  app.add_flag("--insecure", insecure,
               "Allow data and metrics, which are not encrypted, beyond loopback, as worker.insecure does");
  app.add_option("--card", cards, "An NVIDIA card to offer, by index or UUID, instead of all [[device]]; may be repeated: 0,1")
      ->delimiter(',')
      ->check(CheckCard, "INDEX|UUID");
}

void ConfigFlags::Apply(WorkerConfig& config) const {
  if (!node.empty()) config.name = node;
  if (!coordinators.empty()) config.coordinators = coordinators;
  if (!data_address.empty()) config.data_address = data_address;
  // What is no path stays as it was written: Validate says so.
  const bool path = WhyNoPath(identity, Patterns::kTake).empty();
  if (!identity.empty()) config.identity = path ? std::filesystem::absolute(identity).string() : identity;
  if (!roots.empty()) config.file_roots = roots;
  const bool files_path = WhyNoPath(files, Patterns::kTake).empty();
  if (!files.empty()) config.files_local = files_path ? std::filesystem::absolute(files).string() : files;
  if (!metrics.empty()) config.metrics = metrics;
  if (no_metrics) config.metrics.clear();
  if (cores) config.cores = *cores;
  if (stop_seconds) config.stop_seconds = *stop_seconds;
  if (!rank_binary.empty()) config.rank_binary = rank_binary;
  config.insecure = config.insecure || insecure;
  if (cards.empty()) return;
  config.devices.clear();
  for (const std::string& card : cards) config.devices.push_back(Card(card, config.devices.size()));
}

bool ConfigFlags::HasMoreThanJoinWrites() const {
  return !files.empty() || !metrics.empty() || no_metrics || cores || stop_seconds || !rank_binary.empty() || insecure ||
         !cards.empty();
}

}  // namespace motley::worker
