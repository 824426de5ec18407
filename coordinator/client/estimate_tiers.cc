#include "coordinator/client/estimate_tiers.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "coordinator/client/format.h"
#include "coordinator/client/table.h"

namespace motley::client {
namespace {

using planner::HostShare;
using planner::TierFit;

int64_t HostBytes(const TierFit& fit) {
  int64_t bytes = 0;
  for (const HostShare& host : fit.hosts) bytes += host.bytes;
  return bytes;
}

std::string FitsText(const TierFit& fit) {
  if (fit.fits.ok()) return "yes";
  return fit.lacking_bytes > 0 ? absl::StrCat("lacks ", FormatBytes(fit.lacking_bytes)) : "no plan";
}

void AddRow(const std::string& name, const TierFit& fit, Table* table) {
  const bool fits = fit.fits.ok();
  table->Add({name, FitsText(fit), fits ? InWords(fit.offloads) : "-", fits ? FormatBytes(HostBytes(fit)) : "-",
              fits ? FormatSeconds(fit.step_seconds) : "-", fits ? FormatRate(fit.tokens_per_second) : "-",
              fits ? (fit.runs_here ? "yes" : "no") : "-", fits ? fit.strategy : "-"});
}

Json FitJson(const TierFit& fit) {
  const bool fits = fit.fits.ok();
  Json offloads = Json::array(), hosts = Json::array();
  if (fit.offloads.activations) offloads.push_back("activations");
  if (fit.offloads.parameters) offloads.push_back("parameters");
  if (fit.offloads.optimizer) offloads.push_back("optimizer");
  for (const HostShare& host : fit.hosts) {
    hosts.push_back(
        {{"node", host.node.value()}, {"ranks", host.ranks}, {"bytes", host.bytes}, {"offered_bytes", host.offered_bytes}});
  }
  return {{"fits", fits},
          {"why_not", fits ? Json(nullptr) : Json(std::string(fit.fits.message()))},
          {"lacking_bytes", fit.lacking_bytes},
          {"strategy", fits ? Json(fit.strategy) : Json(nullptr)},
          {"offloads", std::move(offloads)},
          {"hosts", std::move(hosts)},
          {"step_seconds", fits ? Json(fit.step_seconds) : Json(nullptr)},
          {"tokens_per_second", fits ? Json(fit.tokens_per_second) : Json(nullptr)},
          {"runs_here", fits && fit.runs_here}};
}

}  // namespace

void PrintTiers(std::ostream& out, const Screen& screen, const planner::TierFits& tiers) {
  if (!tiers.with_offload) {
    out << "\noffload: " << CleanText(tiers.no_offload_because) << "\n";
    return;
  }
  out << "\non the cards alone and with the hosts' memory, by a short search:\n";
  Table table({"", "FITS", "OFFLOADS", "ON HOSTS", "STEP", "SPEED", "RUNS HERE", "STRATEGY"});
  AddRow("cards alone", tiers.on_cards, &table);
  AddRow("with offload", *tiers.with_offload, &table);
  table.Spare({"STRATEGY", "RUNS HERE"}).Print(out, screen);
  if (!tiers.with_offload->hosts.empty()) {
    out << Fold(absl::StrCat("on hosts: ", CleanLine(planner::ToText(tiers.with_offload->hosts))), screen.width, 10) << "\n";
  } else if (tiers.on_cards.fits.ok() && tiers.with_offload->fits.ok()) {
    out << "no plan that was tried is faster with offload\n";
  }
}

Json ToJson(const planner::TierFits& tiers) {
  Json json = {{"on_cards", FitJson(tiers.on_cards)}, {"with_offload", nullptr}, {"no_offload_because", nullptr}};
  if (tiers.with_offload) json["with_offload"] = FitJson(*tiers.with_offload);
  if (!tiers.with_offload) json["no_offload_because"] = tiers.no_offload_because;
  return json;
}

}  // namespace motley::client
