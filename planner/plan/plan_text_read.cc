// Reads the plan's text form (docs/use/plan-language.md): what defines a plan. Lines of predictions are passed over.
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_words.h"

namespace motley::planner {
namespace {

constexpr size_t kMostUnfolded = size_t{1} << 24;

// The words of one line, read from the left.
class Words {
 public:
  explicit Words(std::string_view line) : words_(SplitWords(line)) {}

  bool empty() const { return next_ == words_.size(); }
  std::string_view peek() const { return empty() ? std::string_view() : words_[next_]; }
  std::string_view Take() { return empty() ? std::string_view() : words_[next_++]; }
  bool Accept(std::string_view word) {
    if (peek() != word) return false;
    ++next_;
    return true;
  }
  absl::Status Expect(std::string_view word) {
    if (Accept(word)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("expected '", std::string(word), "', got ", Quoted(peek())));
  }
  // A key and its value.
  template <typename T, typename F>
  absl::Status Read(std::string_view key, F&& read, T* out) {
    MOTLEY_RETURN_IF_ERROR(Expect(key));
    MOTLEY_ASSIGN_OR_RETURN(*out, read(Take()));
    return absl::OkStatus();
  }

 private:
  const std::vector<std::string_view> words_;
  size_t next_ = 0;
};

absl::StatusOr<int> ReadSmall(std::string_view word) {
  MOTLEY_ASSIGN_OR_RETURN(const int64_t number, ReadInteger(word));
  if (std::abs(number) > 1000) return absl::InvalidArgumentError(absl::StrCat("expected a small number, got ", number));
  return static_cast<int>(number);
}

// batch 11 = 2x4+3
absl::Status ReadBatch(Words* words, std::vector<int64_t>* microbatches) {
  int64_t batch = 0;
  MOTLEY_RETURN_IF_ERROR(words->Read("batch", ReadInteger, &batch));
  if (words->Accept("=")) {
    MOTLEY_ASSIGN_OR_RETURN(*microbatches, ReadRuns(words->Take()));
  }
  int64_t sum = 0;
  for (const int64_t m : *microbatches) {
    sum += m;
    if (m > batch || sum > batch) break;  // no more than batch + m: no overflow
  }
  if (sum == batch) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("batch is ", batch, " but the microbatches do not add up to it"));
}

absl::Status ReadOffload(std::string_view word, RankPlan* rank) {
  for (const absl::string_view what : absl::StrSplit(absl::string_view(word.data(), word.size()), ',')) {
    if (what == "activations") {
      rank->offload_activations = true;
    } else if (what == "parameters") {
      rank->offload_parameters = true;
    } else if (what == "optimizer") {
      rank->offload_optimizer = true;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("offload ", Quoted(std::string(what)), " is not known; use activations, parameters or optimizer"));
    }
  }
  return absl::OkStatus();
}

class Reader {
 public:
  absl::StatusOr<Plan> Read(std::string_view text) {
    size_t number = 0;
    for (const absl::string_view raw : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
      ++number;
      const absl::string_view line = absl::StripAsciiWhitespace(raw);
      if (line.empty() || line[0] == '#' || IsPrediction(line) || (!headed_ && IsSummary(line))) continue;
      if (absl::Status status = ReadLine(std::string_view(line.data(), line.size())); !status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat("plan text line ", number, ": ", std::string(status.message())));
      }
    }
    if (!headed_)
      return absl::InvalidArgumentError("plan text: the first line must be 'plan STRATEGY batch N seq N DTYPE SCHEDULE'");
    MOTLEY_RETURN_IF_ERROR(CheckGroups());
    if (!exact_) Scale();
    return std::move(plan_);
  }

 private:
  // What `motley plan` prints above the plan.
  static bool IsSummary(absl::string_view line) {
    return absl::StartsWith(line, "bound by ") || absl::StartsWith(line, "runs here: ") || absl::StrContains(line, " a step, ") ||
           absl::StrContains(line, " above the bound: ");
  }
  static bool IsPrediction(absl::string_view line) {
    for (const char* begin : {"predicted ", "between ", "rests on estimates", "bound by: ", "lower bound ", "note: "}) {
      if (absl::StartsWith(line, begin)) return true;
    }
    return false;
  }

  absl::Status ReadLine(std::string_view line) {
    Words words(line);
    if (words.Accept("plan")) return ReadHeader(&words);
    if (!headed_) return absl::InvalidArgumentError("the first line must be 'plan STRATEGY batch N seq N DTYPE SCHEDULE'");
    if (words.Accept("pipeline")) return ReadStage(&words);
    if (absl::StartsWith(absl::string_view(line.data(), line.size()), "unused ")) return ReadUnused(line.substr(7));
    if (stage_ == nullptr) return absl::InvalidArgumentError("expected 'pipeline 0 / stage 0 layers ...' before the ranks");
    if (words.Accept("rank") || words.Accept("ranks")) return ReadRanks(&words);
    return ReadGroup(&words);
  }

  absl::Status ReadHeader(Words* words) {
    if (headed_) return absl::InvalidArgumentError("a second plan begins here; one text holds one");
    headed_ = true;
    if (words->Accept("generation") || words->Accept("epoch")) {  // its name in older plans
      MOTLEY_ASSIGN_OR_RETURN(const int64_t epoch, ReadInteger(words->Take()));
      plan_.epoch = Epoch(epoch);
    }
    MOTLEY_ASSIGN_OR_RETURN(plan_.strategy, ReadWord(words->Take()));
    MOTLEY_RETURN_IF_ERROR(words->Read("batch", ReadInteger, &plan_.global_batch));
    MOTLEY_RETURN_IF_ERROR(words->Read("seq", ReadInteger, &plan_.seq_len));
    MOTLEY_ASSIGN_OR_RETURN(plan_.dtype, ParseDType(words->Take()));
    MOTLEY_ASSIGN_OR_RETURN(plan_.schedule, ParseSchedule(words->Take()));
    while (!words->empty()) {
      if (words->Accept("exact")) {
        exact_ = true;
      } else if (words->peek() == "cluster") {
        MOTLEY_RETURN_IF_ERROR(words->Read("cluster", ReadWord, &plan_.cluster));
      } else if (words->peek() == "in") {
        MOTLEY_RETURN_IF_ERROR(words->Read("in", ReadWord, &plan_.cluster_file));
      } else if (words->peek() == "model") {
        MOTLEY_RETURN_IF_ERROR(words->Read("model", ReadWord, &plan_.model));
      } else {
        MOTLEY_RETURN_IF_ERROR(words->Read("pipelines-zero", ReadSmall, &plan_.pipelines_zero_stage));
      }
    }
    return absl::OkStatus();
  }

  // pipeline 0 / stage 1 layers 0-5 [zero 3] [in-flight 4]
  absl::Status ReadStage(Words* words) {
    MOTLEY_RETURN_IF_ERROR(CheckGroups());
    MOTLEY_ASSIGN_OR_RETURN(const int64_t p, ReadInteger(words->Take()));
    MOTLEY_RETURN_IF_ERROR(words->Expect("/"));
    int64_t s = 0;
    MOTLEY_RETURN_IF_ERROR(words->Read("stage", ReadInteger, &s));
    const auto pipelines = static_cast<int64_t>(plan_.pipelines.size());
    if (p == pipelines) plan_.pipelines.emplace_back();
    if (p != pipelines && p != pipelines - 1) {
      return absl::InvalidArgumentError(absl::StrCat("pipeline ", p, " where ", pipelines, " comes next"));
    }
    std::vector<StagePlan>& stages = plan_.pipelines.back().stages;
    if (s != static_cast<int64_t>(stages.size())) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", s, " where ", stages.size(), " comes next"));
    }
    stage_ = &stages.emplace_back();
    MOTLEY_RETURN_IF_ERROR(words->Read("layers", ReadLayers, &stage_->ministages));
    if (words->peek() == "zero") MOTLEY_RETURN_IF_ERROR(words->Read("zero", ReadSmall, &stage_->zero_stage));
    if (words->peek() == "in-flight") MOTLEY_RETURN_IF_ERROR(words->Read("in-flight", ReadInteger, &stage_->in_flight));
    return words->empty() ? absl::OkStatus() : words->Expect("the end of the line");
  }

  // [4] unit[s] of 2 batch 12 = 3x4: the ranks follow.
  absl::Status ReadGroup(Words* words) {
    MOTLEY_RETURN_IF_ERROR(CheckGroups());
    units_ = 1;
    if (!words->Accept("unit")) {
      MOTLEY_ASSIGN_OR_RETURN(units_, ReadSmall(words->Take()));
      MOTLEY_RETURN_IF_ERROR(words->Expect("units"));
    }
    MOTLEY_RETURN_IF_ERROR(words->Read("of", ReadSmall, &unit_size_));
    if (units_ < 1 || unit_size_ < 1) return absl::InvalidArgumentError("units and their ranks are counted from 1");
    group_batch_.clear();
    group_.clear();
    return ReadBatch(words, &group_batch_);
  }

  // rank[s] 0[-7] DEVICES [MODEL] [batch ...] [tp S] shard R recompute SET [offload SET] [busy ... peak ... [context ...]]
  absl::Status ReadRanks(Words* words) {
    words->Take();  // the number follows from the order
    MOTLEY_ASSIGN_OR_RETURN(const std::vector<DeviceId> devices, ReadDevices(words->Take()));
    RankPlan rank;
    if (words->peek() != "batch" && words->peek() != "tp" && words->peek() != "shard") {
      MOTLEY_ASSIGN_OR_RETURN(rank.device_model, ReadWord(words->Take()));
    }
    std::vector<int64_t> microbatches;
    const bool single = words->peek() == "batch";
    if (single) MOTLEY_RETURN_IF_ERROR(ReadBatch(words, &microbatches));
    if (words->peek() == "tp") MOTLEY_RETURN_IF_ERROR(words->Read("tp", ReadNumber, &rank.tp_share));
    MOTLEY_RETURN_IF_ERROR(words->Read("shard", ReadNumber, &rank.shard_ratio));
    if (!words->empty()) MOTLEY_RETURN_IF_ERROR(words->Read("recompute", ParseOpSet, &rank.recompute));
    if (words->Accept("offload")) MOTLEY_RETURN_IF_ERROR(ReadOffload(words->Take(), &rank));
    if (!words->empty()) MOTLEY_RETURN_IF_ERROR(words->Expect("busy"));  // the rest is predicted
    if (single) MOTLEY_RETURN_IF_ERROR(CheckGroups());
    MOTLEY_RETURN_IF_ERROR(Spend(devices.size(), 1 + (single ? microbatches.size() : group_batch_.size())));
    for (const DeviceId& device : devices) {
      rank.device = device;
      if (single) {
        stage_->units.push_back({{rank}, microbatches});
      } else {
        MOTLEY_RETURN_IF_ERROR(AddToGroup(rank));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddToGroup(const RankPlan& rank) {
    if (units_ == 0) return absl::InvalidArgumentError("expected 'batch' (or a line 'unit of N batch ...' above)");
    group_.push_back(rank);
    if (static_cast<int>(group_.size()) < unit_size_) return absl::OkStatus();
    stage_->units.push_back({group_, group_batch_});
    group_.clear();
    --units_;
    return absl::OkStatus();
  }

  absl::Status CheckGroups() const {
    if (units_ == 0 && group_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("units of ", unit_size_, " ranks: ", units_, " are not complete"));
  }

  // DEVICES: REASON
  absl::Status ReadUnused(std::string_view rest) {
    bool quoted = false;
    size_t colon = 0;
    for (; colon < rest.size() && (quoted || rest[colon] != ':'); ++colon) {
      if (quoted && rest[colon] == '\\') ++colon;
      if (colon < rest.size() && rest[colon] == '"') quoted = !quoted;
    }
    if (colon >= rest.size()) return absl::InvalidArgumentError("expected 'unused DEVICE: REASON'");
    MOTLEY_ASSIGN_OR_RETURN(const std::vector<DeviceId> devices, ReadDevices(rest.substr(0, colon)));
    std::string_view because = rest.substr(colon + 1);
    if (!because.empty() && because[0] == ' ') because.remove_prefix(1);
    MOTLEY_ASSIGN_OR_RETURN(const std::string reason, ReadWord(because));
    MOTLEY_RETURN_IF_ERROR(Spend(devices.size(), 1 + reason.size()));
    for (const DeviceId& device : devices) plan_.unused.push_back({device, reason});
    return absl::OkStatus();
  }

  // Ranges and counts unfold; a short text must not fill the memory.
  absl::Status Spend(size_t count, size_t each) {
    unfolded_ += count * each;
    if (unfolded_ <= kMostUnfolded) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the plan unfolds to more than ", kMostUnfolded, " entries"));
  }

  // Shares with three decimals are made to add up again.
  void Scale() {
    for (PipelinePlan& pipeline : plan_.pipelines) {
      for (StagePlan& stage : pipeline.stages) {
        double shard = 0;
        for (UnitPlan& unit : stage.units) {
          double tp = 0;
          for (const RankPlan& rank : unit.ranks) {
            tp += rank.tp_share;
            shard += rank.shard_ratio;
          }
          for (RankPlan& rank : unit.ranks) rank.tp_share = Scaled(rank.tp_share, tp, unit.ranks.size());
        }
        for (UnitPlan& unit : stage.units) {
          for (RankPlan& rank : unit.ranks) {
            if (stage.zero_stage > 0) rank.shard_ratio = Scaled(rank.shard_ratio, shard, stage.units.size() * unit.ranks.size());
          }
        }
      }
    }
  }

  // Only rounding is mended: half a thousandth for each share. Sums beyond it are for Validate to refuse.
  static double Scaled(double share, double sum, size_t count) {
    const double error = std::abs(sum - 1);
    return sum > 0 && error > 1e-12 && error <= 0.0005 * static_cast<double>(count) + 1e-9 ? share / sum : share;
  }

  Plan plan_;
  StagePlan* stage_ = nullptr;
  bool headed_ = false, exact_ = false;
  size_t unfolded_ = 0;
  int units_ = 0, unit_size_ = 0;  // that the next ranks belong to
  std::vector<int64_t> group_batch_;
  std::vector<RankPlan> group_;
};

}  // namespace

absl::StatusOr<Plan> ParsePlanText(std::string_view text) {
  if (static_cast<int64_t>(text.size()) > kLongestPlanBytes) {
    return absl::InvalidArgumentError(absl::StrCat("plan text: ", text.size(), " bytes; a plan has at most ", kLongestPlanBytes));
  }
  return Reader().Read(text);
}

}  // namespace motley::planner
