#include "coordinator/client/cards_command.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/device/device_table.h"
#include "coordinator/client/json.h"
#include "coordinator/client/offline_flags.h"
#include "coordinator/client/table.h"

namespace motley::client {
namespace {

constexpr double kTera = 1e12, kGiga = 1e9;

std::string Number(double value) { return absl::StrFormat("%.6g", value); }
// Of the list, whose rows fit a terminal.
std::string Brief(double value) { return absl::StrFormat("%.4g", value); }
std::string Teraflops(double flops) { return flops > 0 ? Brief(flops / kTera) : "-"; }
std::string Gigabytes(double bytes_per_second) { return Number(bytes_per_second / kGiga); }
std::string Memory(const GpuSpec& gpu) {
  return absl::StrCat(Number(static_cast<double>(gpu.memory_bytes) / static_cast<double>(int64_t{1} << 30)), " GiB");
}

// "fp16  312 TFLOP/s".
std::string FlopsLine(const char* precision, double flops) {
  return absl::StrFormat("  %-8s%s\n", precision, flops > 0 ? absl::StrCat(Number(flops / kTera), " TFLOP/s") : "none");
}

std::string ClusterLine(const GpuSpec& gpu) {
  return absl::StrCat("gpus = [{card = \"", std::string(gpu.name), "\", count = 1}]");
}
std::string DeviceLines(const GpuSpec& gpu) {
  return absl::StrCat("[[device]]\nkind = \"emulated\"\nmodel = \"", std::string(gpu.name), "\"");
}

Json CardJson(const GpuSpec& gpu) {
  const auto flops = [](double value) { return value > 0 ? Json(value) : Json(nullptr); };
  return {{"name", std::string(gpu.name)},
          {"fp32_flops", flops(gpu.fp32_flops)},
          {"tf32_flops", flops(gpu.tf32_flops)},
          {"fp16_flops", flops(gpu.fp16_flops)},
          {"bf16_flops", flops(gpu.bf16_flops)},
          {"memory_bytes", gpu.memory_bytes},
          {"memory_bytes_per_second", gpu.memory_bytes_per_second},
          {"link_bytes_per_second", gpu.link_bytes_per_second},
          {"pcie_bytes_per_second", gpu.pcie_bytes_per_second},
          {"peer_access", RowOf(gpu.family).peer_access},
          {"family", std::string(RowOf(gpu.family).name)},
          {"matrix_part", RowOf(gpu.family).parts.matrix},
          {"source", std::string(gpu.source)}};
}

Exit ListCards(Context& context) {
  Json list = Json::array();
  Table table({"CARD", "FP32", "TF32", "FP16", "BF16", "MEMORY", "RATE", "LINK", "PCIE"});
  for (const GpuSpec& gpu : GpuTable()) {
    table.Add({std::string(gpu.name), Teraflops(gpu.fp32_flops), Teraflops(gpu.tf32_flops), Teraflops(gpu.fp16_flops),
               Teraflops(gpu.bf16_flops), Memory(gpu), Brief(gpu.memory_bytes_per_second / kGiga),
               Brief(gpu.link_bytes_per_second / kGiga), Brief(gpu.pcie_bytes_per_second / kGiga)});
    list.push_back(CardJson(gpu));
  }
  if (context.json) {
    PrintDocument(context.out, Json{{"cards", list}});
    return {};
  }
  table.Print(context.out, context.screen);
  PrintProse(
      context,
      "FP32 to BF16: dense peaks in TFLOP/s, - where the card has no such unit. RATE (of its memory), LINK (NVLink or what "
      "takes its place, else PCIe) and PCIE (x16, to the host) in GB/s; links in one direction.");
  return {};
}

Exit ShowCard(Context& context, const std::string& name) {
  const absl::StatusOr<GpuSpec> gpu = FindGpu(name);
  if (!gpu.ok()) {
    return FromPlanner(absl::Status(gpu.status().code(),
                                    absl::StrCat(std::string(gpu.status().message()),
                                                 "; a card that is not listed can be described in a cluster file's [[card]]")));
  }
  if (context.json) {
    Json card = CardJson(*gpu);
    card["cluster_file"] = ClusterLine(*gpu);
    card["worker_file"] = DeviceLines(*gpu);
    PrintDocument(context.out, card);
    return {};
  }
  context.out << gpu->name << "\n"
              << FlopsLine("fp32", gpu->fp32_flops) << FlopsLine("tf32", gpu->tf32_flops) << FlopsLine("fp16", gpu->fp16_flops)
              << FlopsLine("bf16", gpu->bf16_flops);
  const double link = gpu->link_bytes_per_second, pcie = gpu->pcie_bytes_per_second;
  PrintProse(context, absl::StrCat("  memory  ", Memory(*gpu), " at ", Gigabytes(gpu->memory_bytes_per_second), " GB/s"));
  PrintProse(context,
             absl::StrCat("  link    ", Gigabytes(link), " GB/s in each direction", link > pcie ? "" : ", to the host too"));
  if (link > pcie) PrintProse(context, absl::StrCat("  host    ", Gigabytes(pcie), " GB/s in each direction"));
  if (!RowOf(gpu->family).peer_access) PrintProse(context, "  peers   through the host's memory, unless a bridge joins them");
  PrintProse(context, absl::StrCat("  source  ", std::string(gpu->source)));
  PrintProse(context, absl::StrCat("  reaches ", std::string(RowOf(gpu->family).source)));
  context.out << "\nIn a cluster file:\n\n"
              << ClusterLine(*gpu) << "\n\nIn a worker's configuration, as an emulated device:\n\n"
              << DeviceLines(*gpu) << "\n";
  return {};
}

}  // namespace

Action AddCards(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("NAME", *name, "show this card, with its source and the lines that use it");
  app.footer(
      "Names are found as people say them and as the driver has them. A card that is not listed can be described in a cluster "
      "file's [[card]].\n"
      "Example: motley cards 'RTX 6000 Ada'");
  return [name](Context& context) { return name->empty() ? ListCards(context) : ShowCard(context, *name); };
}

}  // namespace motley::client
