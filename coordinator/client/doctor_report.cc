#include "coordinator/client/doctor_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "coordinator/client/table.h"

namespace motley::client {
namespace {

constexpr int kMostLinks = 12;  // in text; JSON has all
constexpr size_t kGap = 2;
constexpr size_t kWidestWhat = 24;

const char* StateWord(v1::Finding::State state) {
  switch (state) {
    case v1::Finding::STATE_OK:
      return "ok";
    case v1::Finding::STATE_WARNING:
      return "warning";
    case v1::Finding::STATE_WRONG:
      return "wrong";
    case v1::Finding::STATE_LEFT_OUT:
      return "left out";
    default:
      return "unknown";  // of a newer coordinator
  }
}

int CountOf(const v1::ClusterCheck& check, v1::Finding::State state) {
  return static_cast<int>(std::count_if(check.findings().begin(), check.findings().end(),
                                        [state](const v1::Finding& finding) { return finding.state() == state; }));
}

std::string Padded(std::string text, size_t width) {
  const size_t columns = Columns(text);
  if (columns < width) text.append(width - columns, ' ');
  return text;
}

std::string RateText(double bytes_per_second) {
  return bytes_per_second > 0 ? absl::StrFormat("%.1f MB/s", bytes_per_second / 1e6) : "-";
}

std::string ConnectText(double seconds) { return seconds > 0 ? absl::StrFormat("%.2f ms", seconds * 1e3) : "-"; }

void PrintLinks(std::ostream& out, const Screen& screen, const v1::ClusterCheck& check) {
  if (check.links().empty() || check.links_size() > kMostLinks) return;
  Table table({"FROM", "TO", "CONNECTION", "RATE", "STATE"});
  for (const v1::Link& link : check.links()) {
    table.Add({link.from(), link.to(), ConnectText(link.connect_seconds()), RateText(link.bytes_per_second()),
               link.error().empty() ? "ok" : "wrong"});
  }
  out << "\n";
  table.Print(out, screen);
}

}  // namespace

v1::Finding::State Worst(const v1::ClusterCheck& check) {
  if (CountOf(check, v1::Finding::STATE_WRONG) > 0) return v1::Finding::STATE_WRONG;
  return CountOf(check, v1::Finding::STATE_WARNING) > 0 ? v1::Finding::STATE_WARNING : v1::Finding::STATE_OK;
}

std::string Verdict(const v1::ClusterCheck& check) {
  const int wrong = CountOf(check, v1::Finding::STATE_WRONG), warnings = CountOf(check, v1::Finding::STATE_WARNING);
  const std::string more = warnings > 0 ? absl::StrCat(", ", Count(warnings, "warning")) : "";
  if (wrong > 0) return absl::StrCat(Count(wrong, "thing is", "things are"), " wrong", more);
  return warnings > 0 ? absl::StrCat("nothing is wrong", more) : "all is well";
}

void PrintCheck(std::ostream& out, const Screen& screen, const v1::ClusterCheck& check) {
  size_t state_width = Columns("STATE"), what_width = Columns("WHAT");
  for (const v1::Finding& finding : check.findings()) {
    state_width = std::max(state_width, Columns(StateWord(finding.state())));
    what_width = std::max(what_width, std::min(kWidestWhat, Columns(CleanLine(finding.what()))));
  }
  const size_t indent = state_width + kGap + what_width + kGap;
  out << Padded("STATE", state_width + kGap) << "WHAT\n";
  for (const v1::Finding& finding : check.findings()) {
    const std::string state = StateWord(finding.state());
    const std::string line = absl::StrCat(Padded(state, state_width + kGap), Padded(CleanLine(finding.what()), what_width + kGap),
                                          CleanLine(finding.text()));
    // By its length without colours.
    out << Painted(screen, state, state) << Fold(line, screen.width, indent).substr(state.size()) << "\n";
  }
  PrintLinks(out, screen, check);
  out << "\n" << Painted(screen, StateWord(Worst(check)), Verdict(check)) << std::endl;
}

Json CheckJson(const v1::ClusterCheck& check) {
  Json json = {{"state", StateWord(Worst(check))}, {"verdict", Verdict(check)}};
  Json details = ToJson(check);
  if (check.version().empty()) details["version"] = details["protocol"] = nullptr;  // no coordinator
  json.update(details);
  return json;
}

}  // namespace motley::client
