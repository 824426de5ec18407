#include "coordinator/client/nodes_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/session/load_text.h"
#include "common/wire/profile.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/pages.h"
#include "coordinator/client/table.h"

namespace motley::client {
namespace {

std::string Speed(const v1::Device& device) {
  if (device.measured_tokens_per_second() <= 0) return "-";
  const std::string speed = FormatRate(device.measured_tokens_per_second());
  return device.measured_model().empty() ? speed : absl::StrCat(speed, " of ", device.measured_model());
}

std::string DeviceState(const v1::Device& device) {
  return device.job_id().empty() ? device.state() : device.state() + " (" + device.job_id() + ")";
}

std::string HostLink(const v1::Card& card) {
  if (card.pcie_generation() == 0 || card.pcie_lanes() == 0) return "-";
  return absl::StrCat("PCIe ", card.pcie_generation(), " x", card.pcie_lanes(),
                      card.nvlink_peers().empty() ? "" : absl::StrCat(" + NVLink to ", card.nvlink_peers().size()));
}

std::string Health(const v1::Card& card) {
  if (!card.lost().empty()) return card.lost();
  if (!card.health().empty()) return card.health();
  return card.note().empty() ? "well" : absl::StrCat("well; ", card.note());
}

// How a card was when it was measured; empty: nobody knows.
std::string WhenMeasured(const v1::Device& device) {
  return MeasuredText(wire::FromProto(device.measured_load()), device.measured_cut_short());
}

// When its certificate expires, unless it is renewed before; of a worker of the coordinator's own machine nothing.
std::string MemberUntil(const v1::Node& node) {
  if (node.member_since_unix_ms() == 0) return "-";
  return FormatTime(node.certificate_until_unix_ms()).substr(0, std::string_view("2026-03-01").size());
}

// What plans may keep there.
std::string HostMemory(const v1::Node& node) {
  return node.offered_host_memory_bytes() > 0 ? FormatBytes(node.offered_host_memory_bytes()) : "-";
}

// Where a rank ran out of the device's memory, or a probe found less than it declares.
std::string PlansUse(const v1::Device& device) {
  if (device.usable_memory_bytes() == 0) return "-";
  std::string text = absl::StrCat(FormatBytes(device.usable_memory_bytes()), " for ", device.measured_model());
  if (device.probed_samples() > 0) absl::StrAppend(&text, ", probed with ", Count(device.probed_samples(), "sample"));
  if (device.memory_corrections() > 0) absl::StrAppend(&text, ", corrected ", Count(device.memory_corrections(), "time"));
  return text;
}

// Of a worker that does not say, nothing.
std::string Kernels(const v1::Card& card) {
  if (!card.kernels().empty()) return "own";
  return card.why_no_kernels().empty() ? "-" : "PyTorch's";
}

// What only real cards have, and the cards that their workers do not offer.
void PrintCards(const v1::ListNodesResponse& response, std::ostream& out, const Screen& screen) {
  std::vector<std::vector<std::string>> rows;
  bool any_measured = false;
  for (const v1::Node& node : response.nodes()) {
    for (const v1::Device& device : node.devices()) {
      if (!device.has_card()) continue;
      const v1::Card& card = device.card();
      const std::string measured = WhenMeasured(device);
      any_measured |= !measured.empty();
      rows.push_back({device.id(), card.name(), FormatBytes(card.used_by_others_bytes()),
                      absl::StrCat(card.driver(), ", CUDA ", card.driver_cuda()), HostLink(card), Kernels(card),
                      device.measured_attention().empty() ? "-" : device.measured_attention(), Health(card),
                      measured.empty() ? "-" : measured});
    }
  }
  std::vector<std::string> header = {"CARD", "NAME", "OTHERS USE", "DRIVER", "LINK", "KERNELS", "ATTENTION", "HEALTH"};
  if (any_measured) header.push_back("WHEN MEASURED");
  Table table(header);
  for (std::vector<std::string>& row : rows) {
    row.resize(header.size());
    table.Add(std::move(row));
  }
  if (!rows.empty()) {
    out << "\n";
    table.Spare({"DRIVER", "NAME"}).Print(out, screen);
  }
  std::map<std::string, std::string> without;  // why: whose
  for (const v1::Node& node : response.nodes()) {
    for (const v1::Device& device : node.devices()) {
      if (device.card().why_no_kernels().empty()) continue;
      std::string& whose = without[device.card().why_no_kernels()];
      absl::StrAppend(&whose, whose.empty() ? "" : ", ", device.id());
    }
  }
  for (const auto& [why, whose] : without)
    out << CleanLine(absl::StrCat("PyTorch's kernels alone on ", whose, ": ", why)) << "\n";
  for (const v1::Node& node : response.nodes()) {
    for (const v1::CardNotUsed& card : node.unused_cards()) {
      out << CleanLine(absl::StrCat("not used on ", node.name(), ": ", card.card(), ": ", card.reason())) << "\n";
    }
  }
}

void PrintNodes(const v1::ListNodesResponse& response, std::ostream& out, const Screen& screen) {
  if (response.nodes().empty()) {
    out << "no nodes; start motley-worker on them\n";
    return;
  }
  const bool any_host =
      std::ranges::any_of(response.nodes(), [](const v1::Node& node) { return node.offered_host_memory_bytes() > 0; });
  const bool any_less = std::ranges::any_of(response.nodes(), [](const v1::Node& node) {
    return std::ranges::any_of(node.devices(), [](const v1::Device& device) { return device.usable_memory_bytes() > 0; });
  });
  std::vector<std::string> header = {"NODE", "STATE", "DEVICE", "MODEL", "KIND", "MEMORY", "MEASURED", "DEVICE STATE"};
  if (any_less) header.push_back("PLANS USE");
  header.push_back("MEMBER UNTIL");
  if (any_host) header.push_back("HOST MEMORY");
  header.push_back("REASON");
  Table table(header);
  for (const v1::Node& node : response.nodes()) {
    bool first = true;
    const auto add = [&](std::vector<std::string> row, const std::string& plans_use) {
      if (any_less) row.push_back(plans_use);
      row.push_back(first ? MemberUntil(node) : "");
      if (any_host) row.push_back(first ? HostMemory(node) : "");
      row.push_back(first ? node.reason() : "");
      table.Add(std::move(row));
      first = false;
    };
    for (const v1::Device& device : node.devices()) {
      add({first ? node.name() : "", first ? node.state() : "", device.id(), device.model(), device.kind(),
           device.memory_bytes() > 0 ? FormatBytes(device.memory_bytes()) : "-", Speed(device), DeviceState(device)},
          PlansUse(device));
    }
    if (first) add({node.name(), node.state(), "-", "", "", "", "", ""}, "");
  }
  table.Spare({"KIND", "MEMBER UNTIL", "HOST MEMORY", "REASON"}).Print(out, screen);
  PrintCards(response, out, screen);
}

Exit ListNodes(Context& context) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  auto response = CallForAll(*connection, &Connection::Stub::ListNodes, v1::ListNodesRequest());
  if (!response.ok()) return FromServer(response.status());
  if (context.json) {
    Json list = ToJson(*response);
    list.erase("next_page_token");
    PrintDocument(context.out, list);
  } else {
    PrintNodes(*response, context.out, context.screen);
  }
  return {};
}

Exit Drain(Context& context, const std::string& name, bool drain) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  v1::DrainNodeRequest request;
  request.set_node(name);
  request.set_drain(drain);
  auto response = connection->Call(&Connection::Stub::DrainNode, request);
  if (!response.ok()) return FromServer(response.status());
  if (context.json) {
    PrintDocument(context.out, ToJson(response->node()));
  } else {
    context.out << "node " << CleanLine(name) << " is " << CleanLine(response->node().state()) << "\n";
  }
  return {};
}

}  // namespace

Action AddNodes(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  CLI::App* drain = app.add_subcommand("drain", "jobs save and leave the node; no plan uses it until it is undrained");
  CLI::App* undrain = app.add_subcommand("undrain", "plans may use the node again");
  for (CLI::App* sub : {drain, undrain}) {
    sub->add_option("NAME", *name, "the node")->required();
    sub->fallthrough();
  }
  app.require_subcommand(0, 1);
  return [name, drain, undrain](Context& context) {
    if (drain->parsed() || undrain->parsed()) return Drain(context, *name, drain->parsed());
    return ListNodes(context);
  };
}

}  // namespace motley::client
