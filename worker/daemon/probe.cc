#include "worker/daemon/probe.h"

#include <unistd.h>

#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/clean_text.h"
#include "common/device/device_table.h"

namespace motley::worker {
namespace {

constexpr double kGiB = 1 << 30;

// The cluster file's text in quotes.
std::string TomlText(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(CleanLine(text), {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

std::string Gpus(const std::vector<std::string>& cards) {
  std::vector<std::string> parts;
  for (size_t i = 0, count = 1; i < cards.size(); i += count, count = 1) {
    while (i + count < cards.size() && cards[i + count] == cards[i]) ++count;
    parts.push_back(count == 1 ? TomlText(cards[i]) : absl::StrCat("{card = ", TomlText(cards[i]), ", count = ", count, "}"));
  }
  return absl::StrJoin(parts, ", ");
}

std::string CardToFillIn(const std::string& model) {
  return absl::StrCat("\n[[card]]   # not in the device table: give its numbers from its data sheet\nname = ", TomlText(model),
                      "\n# fp32_tflops =\n# fp16_tflops =\n# memory_gib =\n# memory_gb_per_second =\n# pcie_gb_per_second =\n");
}

// What is known of a card beyond its model, for whoever reads the file.
std::string DescribeCard(const NvidiaCard& card) {
  std::string text = absl::StrCat("# ", CleanLine(Name(card)), ": ");
  if (!card.error.empty()) return absl::StrCat(text, card.error, "\n");
  absl::StrAppend(&text, card.uuid, ", ", Gibibytes(card.memory_bytes), " (in use: ", Gibibytes(card.used_bytes), "), sm_",
                  card.compute_capability, ", PCIe ", card.pcie_generation, " x", card.pcie_lanes);
  if (!card.nvlink_peers.empty()) absl::StrAppend(&text, ", NVLink to ", absl::StrJoin(card.nvlink_peers, " and "));
  if (card.power_limit_watts > 0) absl::StrAppend(&text, ", ", card.power_limit_watts, " W");
  for (const std::string& errors : {WhyUnusable(card.memory_errors), Contained(card.memory_errors)}) {
    if (!errors.empty()) absl::StrAppend(&text, ", ", errors);
  }
  return absl::StrCat(text, "\n");
}

std::string DescribeHost(const HostFacts& host) {
  return absl::StrFormat("%s, %d cores, %.1f GiB of memory", host.cpu.empty() ? "a CPU that does not say its name" : host.cpu,
                         host.cores, static_cast<double>(host.memory_bytes) / kGiB);
}

}  // namespace

HostFacts ReadHostFacts(const std::string& name) {
  HostFacts host;
  host.name = name;
  host.cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  host.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; host.cpu.empty() && std::getline(cpus, line);) {
    if (!line.starts_with("model name")) continue;
    line.erase(0, line.find(':') + 1);
    absl::StripAsciiWhitespace(&line);
    host.cpu = Echo(line);
  }
  return host;
}

absl::StatusOr<std::string> ProbeText(const HostFacts& host, const NvidiaCards& found) {
  if (found.cards.empty()) {
    const std::string why = found.problem.ok() ? "" : absl::StrCat("; ", found.problem.message());
    return absl::NotFoundError(
        absl::StrCat("no NVIDIA card was found on this node (", DescribeHost(host), why,
                     "): a cluster file describes cards. Its CPU can train: [[device]] kind = \"cpu\" in the "
                     "worker's configuration"));
  }
  std::vector<std::string> cards;
  std::map<std::string, std::string> unknown;  // by model
  for (const NvidiaCard& card : found.cards) {
    const absl::StatusOr<GpuSpec> known = FindGpu(card.model);
    cards.push_back(known.ok() ? std::string(known->name) : card.model);
    if (!known.ok()) unknown.emplace(card.model, CardToFillIn(card.model));
  }
  std::string text = absl::StrCat("# ", Describe(found), "; ", DescribeHost(host), "\n[[node]]\nname = ", TomlText(host.name),
                                  "\ngpus = [", Gpus(cards), "]\n");
  if (host.memory_bytes > 0)
    absl::StrAppendFormat(&text, "host_memory_gib = %.1f\n", static_cast<double>(host.memory_bytes) / kGiB);
  absl::StrAppend(&text, "# nic_gbit_per_second =   # of the network to the other nodes\n");
  for (const auto& [model, section] : unknown) absl::StrAppend(&text, section);
  absl::StrAppend(&text, "\n");
  if (!found.problem.ok()) absl::StrAppend(&text, "# more is not known: ", CleanLine(std::string(found.problem.message())), "\n");
  for (const NvidiaCard& card : found.cards) {
    if (found.problem.ok()) absl::StrAppend(&text, DescribeCard(card));
  }
  return text;
}

}  // namespace motley::worker
