// Writes the plan for people (docs/use/plan-language.md). Consecutive units that differ in nothing but their device are one line.
#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_words.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

// Of the first line, by which a plan's text is known.
constexpr absl::string_view kFirstWord = "plan ", kBatch = " batch ", kSeqLen = " seq ";

// Ranks that are written as one line: those at [rank, rank + devices).
struct Line {
  size_t rank = 0;
  std::vector<DeviceId> devices;
  std::string model, batch, attributes;  // batch: empty inside a unit of several ranks
};

std::string Attributes(const RankPlan& rank) {
  std::string text;
  if (rank.tp_share != 1) absl::StrAppend(&text, "tp ", ShareText(rank.tp_share), "  ");
  absl::StrAppend(&text, "shard ", ShareText(rank.shard_ratio), "  ", absl::StrFormat("recompute %-4s", ToText(rank.recompute)),
                  "  ");
  if (rank.offload.any()) absl::StrAppend(&text, "offload ", absl::StrJoin(WordsOf(rank.offload), ","), "  ");
  const int64_t context = rank.predicted.memory.context;
  return absl::StrCat(text, "busy ", SecondsText(rank.predicted.busy_seconds), "  peak ", BytesText(rank.predicted.peak_bytes),
                      context > 0 ? absl::StrCat("  context ", BytesText(context)) : "");
}

Line MakeLine(const RankPlan& rank, size_t number) {
  return {number, {rank.device}, rank.device_model.empty() ? "" : QuotedWord(rank.device_model), "", Attributes(rank)};
}

bool SameButDevices(const Line& a, const Line& b) {
  return a.model == b.model && a.batch == b.batch && a.attributes == b.attributes;
}

// Lines padded to columns, `indent` before each.
void AppendLines(const std::vector<Line>& lines, const std::string& indent, std::string* out) {
  std::vector<std::array<std::string, 4>> cells;
  std::array<size_t, 4> width{};
  for (const Line& line : lines) {
    const size_t last = line.rank + line.devices.size() - 1;
    const std::string rank = last == line.rank ? absl::StrCat("rank ", line.rank) : absl::StrCat("ranks ", line.rank, "-", last);
    cells.push_back({rank, DevicesText(line.devices), line.model, line.batch.empty() ? "" : absl::StrCat("batch ", line.batch)});
    for (size_t c = 0; c < 4; ++c) width[c] = std::max(width[c], cells.back()[c].size());
  }
  for (size_t l = 0; l < lines.size(); ++l) {
    absl::StrAppendFormat(out, "%s%-*s %-*s %-*s  ", indent, width[0], cells[l][0], width[1], cells[l][1], width[2], cells[l][2]);
    if (width[3] > 0) absl::StrAppendFormat(out, "%-*s  ", width[3], cells[l][3]);
    absl::StrAppend(out, lines[l].attributes, "\n");
  }
}

// A unit of several ranks, or several such units whose ranks are all alike.
void AppendGroup(const std::vector<Line>& ranks, const std::string& batch, size_t units, size_t unit_size, std::string* out) {
  absl::StrAppend(out, "  ", units > 1 ? absl::StrCat(units, " units") : "unit", " of ", unit_size, "  batch ", batch, "\n");
  std::vector<Line> lines;
  for (const Line& rank : ranks) {
    if (!lines.empty() && SameButDevices(lines.back(), rank)) {
      lines.back().devices.push_back(rank.devices[0]);
    } else {
      lines.push_back(rank);
    }
  }
  AppendLines(lines, "    ", out);
}

class StageWriter {
 public:
  StageWriter(size_t* next_rank, std::string* out) : next_rank_(next_rank), out_(out) {}

  void Write(const StagePlan& stage) {
    for (const UnitPlan& unit : stage.units) {
      std::vector<Line> ranks;
      for (const RankPlan& rank : unit.ranks) ranks.push_back(MakeLine(rank, (*next_rank_)++));
      const std::string batch = BatchText(unit.microbatches);
      if (ranks.size() == 1) {
        AddSingle(std::move(ranks[0]), batch);
      } else {
        AddGroup(std::move(ranks), batch);
      }
    }
    FlushSingles();
    FlushGroup();
  }

 private:
  void AddSingle(Line line, const std::string& batch) {
    FlushGroup();
    line.batch = batch;
    if (!singles_.empty() && SameButDevices(singles_.back(), line)) {
      singles_.back().devices.push_back(line.devices[0]);
    } else {
      singles_.push_back(std::move(line));
    }
  }

  void AddGroup(std::vector<Line> ranks, const std::string& batch) {
    FlushSingles();
    const bool alike = std::all_of(ranks.begin(), ranks.end(), [&](const Line& r) { return SameButDevices(r, ranks[0]); });
    const bool joins = !group_.empty() && alike && group_alike_ && unit_size_ == ranks.size() && group_batch_ == batch &&
                       SameButDevices(group_[0], ranks[0]);
    if (!joins) {
      FlushGroup();
      unit_size_ = ranks.size();
      group_batch_ = batch;
      group_alike_ = alike;
    }
    ++units_;
    group_.insert(group_.end(), std::make_move_iterator(ranks.begin()), std::make_move_iterator(ranks.end()));
  }

  void FlushSingles() {
    AppendLines(singles_, "  ", out_);
    singles_.clear();
  }

  void FlushGroup() {
    if (units_ > 0) AppendGroup(group_, group_batch_, units_, unit_size_, out_);
    group_.clear();
    units_ = 0;
  }

  size_t* const next_rank_;
  std::string* const out_;
  std::vector<Line> singles_, group_;
  std::string group_batch_;
  bool group_alike_ = false;
  size_t units_ = 0, unit_size_ = 0;
};

// A sentence that stays on its line.
std::string Sentence(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x20; });
  if (plain && (text.empty() || (text.front() != '"' && text.front() != ' '))) return text;
  return QuotedWord(text);
}

void AppendUnused(const Plan& plan, std::string* out) {
  for (size_t i = 0; i < plan.unused.size();) {
    std::vector<DeviceId> devices;
    size_t end = i;
    while (end < plan.unused.size() && plan.unused[end].because == plan.unused[i].because)
      devices.push_back(plan.unused[end++].device);
    absl::StrAppend(out, "  unused ", DevicesText(devices), ": ", Sentence(plan.unused[i].because), "\n");
    i = end;
  }
}

void AppendPrediction(const PlanPrediction& p, std::string* out) {
  absl::StrAppendFormat(out, "predicted %s a step, %.0f tokens/s", SecondsText(p.step_seconds), p.tokens_per_second);
  if (p.mfu > 0) absl::StrAppendFormat(out, ", MFU %.1f %%, HFU %.1f %%", 100 * p.mfu, 100 * p.hfu);
  absl::StrAppendFormat(out, ", idle %.1f %%", 100 * p.idle_share);
  if (p.tokens_per_dollar > 0) absl::StrAppend(out, ", ", CountText(p.tokens_per_dollar), " tokens/$");
  absl::StrAppend(out, "\n");
  if (p.low_seconds > 0 && p.high_seconds > p.low_seconds) {
    absl::StrAppend(out, "between ", SecondsText(p.low_seconds), " and ", SecondsText(p.high_seconds),
                    p.estimated ? " in nine cases of ten, as it rests on estimates" : "", "\n");
  } else if (p.estimated) {
    absl::StrAppend(out, "rests on estimates\n");
  }
  if (!p.binding_constraint.empty()) absl::StrAppend(out, "bound by: ", p.binding_constraint, "\n");
  if (p.lower_bound_seconds > 0) {
    absl::StrAppendFormat(out, "lower bound %s, gap %.1f %%\n", SecondsText(p.lower_bound_seconds), 100 * p.gap());
  }
  for (const std::string& note : p.notes) absl::StrAppend(out, "note: ", absl::StrReplaceAll(note, {{"\n", " "}}), "\n");
}

}  // namespace

std::string ToText(const Plan& plan) {
  std::string out = LayoutText(plan);
  AppendPrediction(plan.predicted, &out);
  return out;
}

std::string LayoutText(const Plan& plan) {
  std::string out(kFirstWord);
  if (plan.epoch != Epoch()) absl::StrAppend(&out, "generation ", plan.epoch.value(), " ");
  absl::StrAppend(&out, QuotedWord(plan.strategy), kBatch, plan.global_batch, kSeqLen, plan.seq_len, " ",
                  std::string(DTypeName(plan.dtype)), " ", std::string(ScheduleName(plan.schedule)));
  if (!plan.cluster.empty()) absl::StrAppend(&out, " cluster ", QuotedWord(plan.cluster));
  if (!plan.cluster_file.empty()) absl::StrAppend(&out, " in ", QuotedWord(plan.cluster_file));
  if (!plan.model.empty()) absl::StrAppend(&out, " model ", QuotedWord(plan.model));
  if (plan.pipelines_zero_stage != 0) absl::StrAppend(&out, " pipelines-zero ", plan.pipelines_zero_stage);
  if (plan.optimizer_steps == OptimizerSteps::kInTurn) absl::StrAppend(&out, " steps in turn");
  absl::StrAppend(&out, "\n");
  size_t rank = 0;
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      const StagePlan& stage = plan.pipelines[p].stages[s];
      absl::StrAppend(&out, "pipeline ", p, " / stage ", s, " layers ", LayersText(stage.ministages), " zero ", stage.zero_stage,
                      stage.in_flight != 0 ? absl::StrCat(" in-flight ", stage.in_flight) : "",
                      stage.prefetch != 1 ? absl::StrCat(" prefetch ", stage.prefetch) : "", "\n");
      StageWriter(&rank, &out).Write(stage);
    }
  }
  AppendUnused(plan, &out);
  return out;
}

bool IsPlanText(std::string_view text) {
  for (const absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    if (absl::StartsWith(line, kFirstWord) && absl::StrContains(line, kBatch) && absl::StrContains(line, kSeqLen)) return true;
  }
  return false;
}

}  // namespace motley::planner
