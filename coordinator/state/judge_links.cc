// JudgePorts and JudgeLinks.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/count.h"
#include "common/base/duration_text.h"
#include "coordinator/state/examination_findings.h"

namespace motley::coordinator {
namespace {

constexpr double kSlowShare = 1.0 / 3;  // of the upper median

std::string Rate(double bytes_per_second) {
  if (bytes_per_second >= 1e9) return absl::StrFormat("%.2f GB/s", bytes_per_second / 1e9);
  return bytes_per_second >= 1e6 ? absl::StrFormat("%.1f MB/s", bytes_per_second / 1e6)
                                 : absl::StrFormat("%.1f kB/s", bytes_per_second / 1e3);
}

// Who does not reach a node, or whom a node does not, and the first reason.
struct Unreached {
  std::vector<NodeName> from;
  std::string error;
};

std::string ConnectTimes(const std::vector<double>& seconds) {
  if (seconds.empty()) return "";
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  if (seconds.size() == 1) return absl::StrCat("; a connection takes ", DurationText(absl::Seconds(*least)));
  return absl::StrCat("; a connection takes ", DurationText(absl::Seconds(*least)), " to ", DurationText(absl::Seconds(*most)));
}

Finding AllReached(const Examination& e, size_t reached, const std::vector<double>& seconds) {
  const std::string times = ConnectTimes(seconds);
  if (e.nodes.size() > kMostTargets + 1) {
    return {FindingState::kOk, "ports", absl::StrCat("every node reaches the ", kMostTargets, " that follow it by name", times)};
  }
  return {FindingState::kOk, "ports",
          absl::StrCat("every node reaches every other at its data address (", Count(reached, "way"), ")", times)};
}

// Two cards in one subnet, where the one of the data address leads nowhere: jobs run, by a card that nobody has chosen.
void JudgeCardsOfWays(const ClusterState& state, const Examination& e, std::vector<Finding>* findings) {
  std::map<NodeName, Unreached> others;  // by who sends: to whom, and the first reason
  for (const auto& [way, answer] : e.ways) {
    if (!answer.answered || answer.other_card.empty()) continue;
    Unreached& sender = others[way.first];
    sender.from.push_back(way.second);
    if (sender.error.empty()) sender.error = answer.other_card;
  }
  std::vector<Finding> rows;
  for (const auto& [name, to] : others) {
    const auto node = state.nodes.find(name);
    const std::string address = node == state.nodes.end() ? "" : absl::StrCat(" ", node->second.description.data_address);
    rows.push_back(
        {FindingState::kWarning, absl::StrCat("card of ", name.value()),
         absl::StrCat("what it sends to ", SomeNames(to.from), " may leave by another card than that of its data address",
                      address, ": ", to.error, "; give each card a subnet of its own, or look at rp_filter and ",
                      "filters by source address on the way")});
  }
  AppendSome(std::move(rows), "cards", findings);
}

}  // namespace

std::vector<Finding> JudgePorts(const ClusterState& state, const Examination& e) {
  std::vector<Finding> findings;
  if (e.nodes.empty()) return findings;
  if (e.nodes.size() == 1) return {{FindingState::kLeftOut, "ports", "there is only one node"}};
  std::map<NodeName, Unreached> unreached;
  std::vector<double> seconds;
  size_t reached = 0, unsaid = 0;
  for (const auto& [way, answer] : e.ways) {
    if (!answer.answered) {
      ++unsaid;
    } else if (answer.error.empty()) {
      ++reached;
      if (answer.connect_seconds > 0) seconds.push_back(answer.connect_seconds);
    } else {
      Unreached& target = unreached[way.second];
      target.from.push_back(way.first);
      if (target.error.empty()) target.error = answer.error;
    }
  }
  std::vector<Finding> wrong;
  for (const auto& [to, u] : unreached) {
    wrong.push_back(
        {FindingState::kWrong, absl::StrCat("ports of ", to.value()),
         absl::StrCat("tried from ", SomeNames(u.from), ": ", u.error, "; look at worker.data_address of node ", to.value(),
                      " and open the ports of /proc/sys/net/ipv4/ip_local_port_range between the data addresses; where a "
                      "connection was made, look whether motley-worker is stopped or overloaded there")});
  }
  if (!e.silent.empty()) {
    wrong.push_back({FindingState::kWrong, "ports",
                     absl::StrFormat("whom they reach was not said within %.0f s by %s; look at their logs",
                                     absl::ToDoubleSeconds(e.limits.reach),
                                     SomeNames(std::vector<NodeName>(e.silent.begin(), e.silent.end())))});
  }
  if (wrong.empty() && unsaid == 0 && reached > 0) {
    findings.push_back(AllReached(e, reached, seconds));
  } else if (reached > 0) {
    findings.push_back({wrong.empty() ? FindingState::kOk : FindingState::kWarning, "ports",
                        absl::StrCat(reached, " of ", Count(e.ways.size(), "way"),
                                     " between the nodes are open, the others are named below", ConnectTimes(seconds))});
  }
  if (wrong.empty() && unsaid > 0) {
    findings.push_back({FindingState::kWarning, "ports",
                        absl::StrCat("of ", Count(unsaid, "way"), " nothing was said; did a node leave meanwhile? Ask again")});
  }
  for (const auto& [name, incarnation] : e.nodes) {
    const auto node = state.nodes.find(name);
    if (node == state.nodes.end() || node->second.description.reach_port != 0) continue;
    wrong.push_back(
        {FindingState::kWrong, "ports", absl::StrCat("node ", name.value(), " listens on no port of its data address")});
  }
  AppendSome(std::move(wrong), "ports", &findings);
  JudgeCardsOfWays(state, e, &findings);
  return findings;
}

std::vector<Finding> JudgeLinks(const Examination& e) {
  std::vector<Finding> findings;
  if (e.nodes.size() < 2) return findings;
  std::vector<std::pair<double, Way>> rates;
  std::vector<Finding> failed;
  for (const auto& [way, answer] : e.ways) {
    if (answer.bytes_per_second > 0) rates.emplace_back(answer.bytes_per_second, way);
    if (!answer.burst_error.empty()) {
      failed.push_back(
          {FindingState::kWarning, "links",
           absl::StrCat("from ", way.first.value(), " to ", way.second.value(), " not measured: ", answer.burst_error)});
    }
  }
  std::sort(rates.begin(), rates.end());
  const auto name = [](const Way& way) { return absl::StrCat("from ", way.first.value(), " to ", way.second.value()); };
  if (!rates.empty()) {
    const auto named = [&](const auto& rate) { return absl::StrCat(Rate(rate.first), " (", name(rate.second), ")"); };
    std::string text = named(rates.front());
    if (rates.size() > 1) absl::StrAppend(&text, " to ", named(rates.back()));
    absl::StrAppend(&text, ", ", Count(rates.size(), "way"), " measured");
    if (e.nodes.size() > kMostForAllRates) absl::StrAppend(&text, ": of ", e.nodes.size(), " nodes only a ring");
    findings.push_back({FindingState::kOk, "links", text});
    const double usual = rates[rates.size() / 2].first;
    std::vector<Finding> slow;
    for (const auto& [rate, way] : rates) {
      if (rate >= usual * kSlowShare) break;
      slow.push_back({FindingState::kWarning, "links",
                      absl::StrCat(name(way), " only ", Rate(rate), " where ", Rate(usual),
                                   " is usual; look at cable, port, duplex and what else uses the link")});
    }
    AppendSome(std::move(slow), "links", &findings);
  }
  AppendSome(std::move(failed), "links", &findings);
  if (!e.rates_left_out.empty()) {
    findings.push_back(
        {FindingState::kLeftOut, "links", absl::StrCat(rates.empty() ? "" : "the others were not measured: ", e.rates_left_out)});
  } else if (findings.empty()) {
    findings.push_back({FindingState::kLeftOut, "links", "no node reaches another"});
  }
  return findings;
}

}  // namespace motley::coordinator
