#include "coordinator/state/examination.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/cut_text.h"
#include "coordinator/state/cluster.h"

namespace motley::coordinator {
namespace {

constexpr size_t kMaxErrorBytes = 1 << 10;  // of each way
constexpr double kMostBytesPerSecond = 1e13;
constexpr double kMostConnectSeconds = 60;
constexpr absl::Duration kWorthSaying = absl::Seconds(2);
constexpr size_t kMostNames = 4;

std::string CheckId(const Examination& e) {
  switch (e.stage) {
    case ExaminationStage::kReach:
      return absl::StrCat(e.id, "-reach");
    case ExaminationStage::kRates:
      return absl::StrCat(e.id, "-rates-", e.round);
    case ExaminationStage::kWriting:
      return absl::StrCat(e.id, "-write");
    case ExaminationStage::kReading:
      return absl::StrCat(e.id, "-read");
    default:
      return "";
  }
}

// Names the file of a token; every writer has one of its own.
JobId TokenJob(const Examination& e, const NodeName& node) {
  return JobId(absl::StrCat(e.id, "-", std::distance(e.nodes.begin(), e.nodes.find(node))));
}
JobId ReadJob(const Examination& e) { return e.writer.empty() ? JobId(absl::StrCat(e.id, "-read")) : TokenJob(e, e.writer); }

bool IsThere(const ClusterState& state, const Examination& e, const NodeName& name) {
  const auto node = state.nodes.find(name);
  return node != state.nodes.end() && node->second.connected && node->second.description.incarnation == e.nodes.at(name);
}

ReachTarget TargetOf(const ClusterState& state, const NodeName& name) {
  const NodeDescription& node = state.nodes.at(name).description;
  return {name, node.data_address, node.reach_port};
}

bool UsesLinks(const ClusterState& state) {
  return state.run && (state.run->stage == Stage::kProfiling || state.run->stage == Stage::kStarting ||
                       state.run->stage == Stage::kRunning || state.run->stage == Stage::kStopping);
}

void Enter(absl::Duration now, ExaminationStage stage, Examination& e) {
  e.stage = stage;
  e.since = now;
  e.waiting.clear();
}

Messages BeginReach(absl::Duration now, const ClusterState& state, Examination& e) {
  Enter(now, ExaminationStage::kReach, e);
  Messages messages;
  std::vector<NodeName> listening;
  for (const auto& [name, incarnation] : e.nodes) {
    if (IsThere(state, e, name) && state.nodes.at(name).description.reach_port != 0) listening.push_back(name);
  }
  for (const auto& [name, incarnation] : e.nodes) {
    if (!IsThere(state, e, name)) continue;
    ReachCheckCommand check{CheckId(e), {}, e.secret, false};
    for (const NodeName& other : Following(listening, name, kMostTargets)) {
      check.targets.push_back(TargetOf(state, other));
      e.ways[{name, other}];
    }
    if (check.targets.empty()) continue;
    e.waiting.insert(name);
    messages.emplace_back(name, std::move(check));
  }
  return messages;
}

// The ways that were not reached are not measured.
void PlanRates(absl::Duration now, const ClusterState& state, Examination& e) {
  Enter(now, ExaminationStage::kRates, e);
  e.rates_since = now;
  std::vector<NodeName> nodes;
  for (const auto& [name, incarnation] : e.nodes) {
    if (IsThere(state, e, name) && !e.silent.contains(name)) nodes.push_back(name);
  }
  for (Round& round : nodes.size() <= kMostForAllRates ? AllWays(nodes) : RingWays(nodes)) {
    std::erase_if(round, [&](const Way& way) {
      const auto answer = e.ways.find(way);
      return answer == e.ways.end() || !answer->second.answered || !answer->second.error.empty();
    });
    if (!round.empty()) e.rounds.push_back(std::move(round));
  }
}

Messages BeginRound(absl::Duration now, const ClusterState& state, Examination& e) {
  e.since = now;
  e.waiting.clear();
  Messages messages;
  for (const auto& [from, to] : e.rounds[e.round]) {
    if (!IsThere(state, e, from) || !IsThere(state, e, to)) continue;
    e.waiting.insert(from);
    messages.emplace_back(from, ReachCheckCommand{CheckId(e), {TargetOf(state, to)}, e.secret, true});
  }
  return messages;
}

// Why no round may begin; empty: one may.
std::string WhyNoRates(absl::Duration now, const ClusterState& state, const Examination& e) {
  if (UsesLinks(state) && !e.request.rates_beside_job) {
    return absl::StrCat("job ", state.run->job.value(),
                        " uses the links; --rates measures them all the same, and slows it for a moment");
  }
  if (now - e.rates_since > e.limits.rates) {
    return absl::StrFormat("no more than %.0f s are spent on them", absl::ToDoubleSeconds(e.limits.rates));
  }
  return "";
}

Messages BeginWriting(absl::Duration now, const ClusterState& state, Examination& e) {
  Enter(now, ExaminationStage::kWriting, e);
  Messages messages;
  if (e.request.checkpoint_folder.empty()) return messages;
  for (const auto& [name, incarnation] : e.nodes) {
    if (!IsThere(state, e, name)) continue;
    const JobId job = TokenJob(e, name);
    e.waiting.insert(name);
    messages.emplace_back(name,
                          StorageCheckCommand{job, Epoch(0), "", e.request.checkpoint_folder, job.value(), true, CheckId(e)});
  }
  return messages;
}

Messages BeginReading(absl::Duration now, const ClusterState& state, Examination& e) {
  Enter(now, ExaminationStage::kReading, e);
  for (const auto& [name, report] : e.written) {
    if (report.error.empty() && e.writer.empty() && IsThere(state, e, name)) e.writer = name;
  }
  Messages messages;
  if (!e.request.HasData() && e.writer.empty()) return messages;
  const JobId job = ReadJob(e);
  const bool folder = !e.writer.empty();
  for (const auto& [name, incarnation] : e.nodes) {
    if (!IsThere(state, e, name)) continue;
    e.waiting.insert(name);
    StorageCheckCommand check{
        job,   Epoch(0),  e.request.data_path, folder ? e.request.checkpoint_folder : "", folder ? job.value() : "",
        false, CheckId(e)};
    check.validation_path = e.request.validation_path;
    check.initial = e.request.initial;
    messages.emplace_back(name, std::move(check));
  }
  return messages;
}

absl::Duration LimitOf(const Examination& e) {
  switch (e.stage) {
    case ExaminationStage::kReach:
      return e.limits.reach;
    case ExaminationStage::kRates:
      return e.limits.round;
    case ExaminationStage::kWriting:
      return e.limits.write;
    case ExaminationStage::kReading:
      return e.request.HasData() ? e.limits.read_data : e.limits.read;
    default:
      return absl::ZeroDuration();
  }
}

// The stage that follows, or the next round.
Messages Next(absl::Duration now, const ClusterState& state, Examination& e) {
  switch (e.stage) {
    case ExaminationStage::kBegin:
      return BeginReach(now, state, e);
    case ExaminationStage::kReach:
      e.silent = e.waiting;
      PlanRates(now, state, e);
      break;
    case ExaminationStage::kRates:
      ++e.round;
      break;
    case ExaminationStage::kWriting:
      return BeginReading(now, state, e);
    default:
      Enter(now, ExaminationStage::kDone, e);
      return Forget(e);
  }
  if (e.round < e.rounds.size()) {
    e.rates_left_out = WhyNoRates(now, state, e);
    if (e.rates_left_out.empty()) return BeginRound(now, state, e);
  }
  return BeginWriting(now, state, e);
}

std::string Kept(const std::string& text) { return CutText(CleanLine(text), kMaxErrorBytes); }

double Plausible(double value, double most) { return std::isfinite(value) && value > 0 && value < most ? value : 0; }

bool IsOfRound(const Examination& e, const Way& way) {
  const Round& round = e.rounds[e.round];
  return std::find(round.begin(), round.end(), way) != round.end();
}

void FileAnswer(const NodeName& node, const ReachAnswer& answer, Examination& e) {
  const auto way = e.ways.find({node, answer.node});
  if (way == e.ways.end()) return;
  WayAnswer& to = way->second;
  if (e.stage == ExaminationStage::kReach) {
    if (to.answered) return;
    to = {true, Kept(answer.error), Plausible(answer.connect_seconds, kMostConnectSeconds), 0, "", Kept(answer.other_card)};
  } else if (IsOfRound(e, way->first)) {
    to.bytes_per_second = answer.error.empty() ? Plausible(answer.bytes_per_second, kMostBytesPerSecond) : 0;
    to.burst_error = Kept(answer.error);
  }
}

}  // namespace

Messages Advance(absl::Duration now, const ClusterState& state, Examination& e) {
  Messages messages;
  while (e.stage != ExaminationStage::kDone) {
    for (const auto& [name, incarnation] : e.nodes) {
      if (IsThere(state, e, name)) continue;
      e.gone.insert(name);
      e.waiting.erase(name);
    }
    if (!e.waiting.empty() && now - e.since <= LimitOf(e)) break;
    for (auto& message : Next(now, state, e)) messages.push_back(std::move(message));
  }
  return messages;
}

Messages Forget(const Examination& e) {
  Messages messages;
  if (!e.request.HasPaths()) return messages;
  for (const auto& [name, incarnation] : e.nodes) {
    std::set<JobId> jobs = {TokenJob(e, name), ReadJob(e)};
    for (const JobId& job : jobs) {
      StorageCheckCommand over{job, Epoch(0), "", "", "", false, ""};
      over.over = true;
      messages.emplace_back(name, std::move(over));
    }
  }
  return messages;
}

bool FileReach(const NodeName& node, const ReachReport& report, Examination& e) {
  if (e.stage != ExaminationStage::kReach && e.stage != ExaminationStage::kRates) return false;
  if (report.check_id != CheckId(e) || e.waiting.erase(node) == 0) return false;
  for (const ReachAnswer& answer : report.answers) FileAnswer(node, answer, e);
  return true;
}

bool FileStorage(const NodeName& node, const StorageReport& report, Examination& e) {
  if (e.stage != ExaminationStage::kWriting && e.stage != ExaminationStage::kReading) return false;
  if (report.check_id != CheckId(e) || e.waiting.erase(node) == 0) return false;
  StorageReport& kept = (e.stage == ExaminationStage::kWriting ? e.written : e.read)[node] = report;
  for (std::string* text : {&kept.error, &kept.data.digest, &kept.data.tokenizer, &kept.validation.digest,
                            &kept.validation.tokenizer, &kept.initial_digest, &kept.initial_tokenizer}) {
    *text = Kept(*text);
  }
  return true;
}

std::string Doing(absl::Duration now, const Examination& e) {
  std::string text;
  switch (e.stage) {
    case ExaminationStage::kBegin:
    case ExaminationStage::kReach:
      text = absl::StrCat("whether ", Count(e.nodes.size(), "node reaches", "nodes reach"), " each other");
      break;
    case ExaminationStage::kRates:
      text = absl::StrCat("measuring the links, round ", e.round + 1, " of ", e.rounds.size());
      break;
    case ExaminationStage::kWriting:
      text = absl::StrCat("every node writes into ", CleanLine(e.request.checkpoint_folder));
      break;
    case ExaminationStage::kReading:
      text = absl::StrCat("every node reads ",
                          CleanLine(e.request.data_path.empty() ? e.request.checkpoint_folder : e.request.data_path));
      break;
    case ExaminationStage::kDone:
      return "done";
  }
  const absl::Duration waited = now - e.since;
  if (waited < kWorthSaying || e.waiting.empty()) return text;
  absl::StrAppend(&text, ", waiting for ");
  size_t named = 0;
  for (const NodeName& name : e.waiting) {
    if (named == kMostNames) {
      absl::StrAppend(&text, " and ", e.waiting.size() - named, " more");
      break;
    }
    absl::StrAppend(&text, named++ == 0 ? "" : ", ", name.value());
  }
  return absl::StrCat(text, absl::StrFormat(" (%d s)", absl::ToInt64Seconds(waited)));
}

}  // namespace motley::coordinator
