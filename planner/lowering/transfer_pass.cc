#include "planner/lowering/transfer_pass.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/lowering/hand_over_order.h"

namespace motley::planner {
namespace {

// What comes over a border: backward, first unit behind the border, microbatch of the receiver.
using Arrival = std::tuple<bool, int32_t, int64_t>;

Arrival ArrivalOf(const StageStep& step, int64_t microbatch) {
  return {step.backward(), step.backward() ? step.unit + 1 : step.unit, microbatch};
}

// A microbatch of a stage, by its place in the batch.
struct Slot {
  int64_t begin = 0, end = 0;
  size_t member = 0;
  int64_t microbatch = 0;
};

// How far a member is.
struct Progress {
  size_t next = 0;
  MemberStep* sends = nullptr;         // what it has made whose pieces have no order yet
  std::map<Arrival, int64_t> missing;  // samples
  std::deque<ComingPiece> coming;      // that may be received
};

class TransferPass {
 public:
  TransferPass(std::vector<StageMember> members, const std::vector<StageSteps>& stages, const PipelineSchedule& schedule)
      : members_(std::move(members)),
        stages_(stages),
        schedule_(schedule),
        progress_(members_.size()),
        slots_(stages.size()),
        passed_(stages.size(), 0) {
    for (size_t m = 0; m < members_.size(); ++m) AddMember(m);
    for (size_t s = 0; s < stages.size(); ++s) {
      std::sort(slots_[s].begin(), slots_[s].end(), [](const Slot& a, const Slot& b) { return a.begin < b.begin; });
      CountPassed(s);
    }
  }

  absl::StatusOr<std::vector<StageMember>> Run() {
    do {
      for (size_t m = Next(); m < members_.size(); m = Next()) Compute(m);
    } while (Come(hand_overs_.All()));
    for (size_t m = 0; m < members_.size(); ++m) {
      if (progress_[m].next < members_[m].steps.size()) return Stuck(m);
    }
    return std::move(members_);
  }

 private:
  const StageStep& StepOf(size_t m, const MemberStep& own) const { return stages_[members_[m].stage].steps[own.step]; }
  const MemberMicrobatches& MicrobatchesOf(size_t m) const {
    return schedule_.stages[members_[m].stage].members[members_[m].index];
  }
  // The other stage that a microbatch goes to behind the step, or comes from before it; -1 = none.
  int Neighbour(size_t m, const StageStep& step, bool behind) const {
    if (!step.hands_over() || step.place != (behind ? step.num_places - 1 : 0)) return -1;
    const int32_t v = step.virtual_stage + (step.backward() == behind ? -1 : 1);
    if (v < 0 || v >= static_cast<int32_t>(schedule_.stage_of.size())) return -1;
    return schedule_.stage_of[v] == static_cast<int32_t>(members_[m].stage) ? -1 : schedule_.stage_of[v];
  }

  void AddMember(size_t m) {
    const size_t s = members_[m].stage;
    const MemberMicrobatches& microbatches = MicrobatchesOf(m);
    for (size_t k = 0; k < microbatches.size(); ++k) {
      slots_[s].push_back({microbatches[k].first, microbatches[k].end(), m, static_cast<int64_t>(k)});
      samples_[{s, microbatches[k].round}] += microbatches[k].samples;
    }
    for (MemberStep& own : members_[m].steps) {
      const StageStep& step = StepOf(m, own);
      own.arrives = Neighbour(m, step, false) >= 0;
      if (!own.arrives) continue;
      progress_[m].missing[ArrivalOf(step, own.microbatch)] = microbatches[own.microbatch].samples;
    }
  }

  // Of the members that can go on the one that is done with its work first; behind the last: none.
  size_t Next() const {
    size_t best = members_.size();
    double first = std::numeric_limits<double>::infinity();
    for (size_t m = 0; m < members_.size(); ++m) {
      const size_t next = progress_[m].next;
      if (next == members_[m].steps.size() || members_[m].steps[next].end >= first || !IsReady(m)) continue;
      first = members_[m].steps[next].end;
      best = m;
    }
    return best;
  }
  bool IsReady(size_t m) const {
    const MemberStep& own = members_[m].steps[progress_[m].next];
    const StageStep& step = StepOf(m, own);
    if (step.waits_for >= 0 && passed_[members_[m].stage] <= static_cast<size_t>(step.waits_for)) return false;
    const auto missing = progress_[m].missing.find(ArrivalOf(step, own.microbatch));
    return missing == progress_[m].missing.end() || missing->second == 0;
  }

  void Compute(size_t m) {
    MemberStep& own = members_[m].steps[progress_[m].next++];
    const StageStep& step = StepOf(m, own);
    Receive(ArrivalOf(step, own.microbatch), &progress_[m].coming, &own.receives);
    if (const int to = Neighbour(m, step, true); to >= 0) Deliver(m, step, slots_[static_cast<size_t>(to)], &own);
    CountPassed(members_[m].stage);
  }

  // Steps that all of the stage's members have passed.
  void CountPassed(size_t s) {
    passed_[s] = stages_[s].steps.size();
    for (size_t m = 0; m < members_.size(); ++m) {
      if (members_[m].stage != s || progress_[m].next == members_[m].steps.size()) continue;
      passed_[s] = std::min(passed_[s], members_[m].steps[progress_[m].next].step);
    }
  }

  // What the member needs now, and everything that was sent to it before that.
  static void Receive(const Arrival& arrival, std::deque<ComingPiece>* coming, std::vector<Operation>* receives) {
    const auto is_it = [&](const ComingPiece& c) { return Arrival(c.backward, c.unit, c.microbatch) == arrival; };
    const auto newest = std::find_if(coming->rbegin(), coming->rend(), is_it);
    for (auto left = coming->rend() - newest; left > 0; --left) {
      receives->push_back(std::move(coming->front().receive));
      coming->pop_front();
    }
  }

  // To those of the neighbouring virtual stage who have the same samples.
  void Deliver(size_t m, const StageStep& step, const std::vector<Slot>& slots, MemberStep* own) {
    const ScheduledMicrobatch& from = MicrobatchesOf(m)[own->microbatch];
    const int32_t unit = step.backward() ? step.unit : step.unit + 1, rank = members_[m].rank, sender = static_cast<int32_t>(m);
    Come(hand_overs_.WithSender(sender));
    progress_[m].sends = own;
    auto to = std::partition_point(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.end <= from.first; });
    for (; to != slots.end() && to->begin < from.end(); ++to) {
      const int64_t first = std::max(from.first, to->begin), samples = std::min(from.end(), to->end) - first;
      const int32_t peer = members_[to->member].rank;
      const auto fill = [&]<typename Op>(Op, int64_t k, int32_t other) -> Operation {
        return Op{unit, static_cast<int32_t>(k), static_cast<int32_t>(first), static_cast<int32_t>(samples), other};
      };
      ComingPiece piece{{}, {}, step.backward(), unit, to->microbatch, sender, static_cast<int32_t>(to->member), first, samples};
      if (step.backward()) {
        piece.send = fill(SendGradient{}, own->microbatch, peer);
        piece.receive = fill(ReceiveGradient{}, to->microbatch, rank);
      } else {
        piece.send = fill(SendActivation{}, own->microbatch, peer);
        piece.receive = fill(ReceiveActivation{}, to->microbatch, rank);
      }
      Come(hand_overs_.Add(std::move(piece), from.round, samples_.at({members_[m].stage, from.round})));
    }
  }

  // The order in which these are sent, and the receivers may take them. Whether there are any.
  bool Come(std::vector<ComingPiece> pieces) {
    for (ComingPiece& piece : pieces) {
      progress_[piece.sender].sends->sends.push_back(piece.send);
      Progress& receiver = progress_[piece.receiver];
      receiver.missing.at({piece.backward, piece.unit, piece.microbatch}) -= piece.samples;
      receiver.coming.push_back(std::move(piece));
    }
    return !pieces.empty();
  }

  absl::Status Stuck(size_t m) const {
    const MemberStep& own = members_[m].steps[progress_[m].next];
    const StageStep& step = StepOf(m, own);
    return absl::InternalError(absl::StrCat("the plan's ranks would wait for each other: rank ", members_[m].rank, " before the ",
                                            step.backward() ? "backward" : "forward", " of unit ", step.unit, ", microbatch ",
                                            own.microbatch));
  }

  std::vector<StageMember> members_;
  const std::vector<StageSteps>& stages_;
  const PipelineSchedule& schedule_;
  std::vector<Progress> progress_;                         // by member
  std::vector<std::vector<Slot>> slots_;                   // by stage, in the order of their samples
  std::vector<size_t> passed_;                             // by stage
  std::map<std::pair<size_t, int64_t>, int64_t> samples_;  // by stage and round
  HandOverOrder hand_overs_;
};

// Microbatch by microbatch a unit is a part of the microbatch's time; block by block it is a part of the time of all of them.
double EndOf(const StageStep& step, int64_t k, int64_t count, const LogicalTimes& times) {
  const LogicalSpan& own = times.At(step.kind, step.virtual_stage, k);
  if (step.round != kAllRounds) return own.begin + (own.end - own.begin) * (step.place + 1) / step.num_places;
  const double begin = times.At(step.kind, step.virtual_stage, 0).begin;
  const double end = times.At(step.kind, step.virtual_stage, count - 1).end;
  return begin + ((end - begin) * step.place + (own.end - begin)) / step.num_places;
}

}  // namespace

std::vector<MemberStep> MemberSteps(const StageSteps& stage, const MemberMicrobatches& microbatches, const LogicalTimes& times) {
  const auto count = static_cast<int64_t>(microbatches.size());
  std::map<int64_t, int64_t> of_round;
  for (int64_t k = 0; k < count; ++k) of_round[microbatches[k].round] = k;
  std::vector<MemberStep> steps;
  for (size_t i = 0; i < stage.steps.size(); ++i) {
    const StageStep& step = stage.steps[i];
    const auto add = [&](int64_t k) { steps.push_back({i, k, EndOf(step, k, count, times)}); };
    if (step.round == kAllRounds) {
      for (int64_t k = 0; k < count; ++k) add(k);
    } else if (const auto own = of_round.find(step.round); own != of_round.end()) {
      add(own->second);
    }
  }
  return steps;
}

absl::StatusOr<std::vector<StageMember>> WithTransfers(std::vector<StageMember> members, const std::vector<StageSteps>& stages,
                                                       const PipelineSchedule& schedule) {
  return TransferPass(std::move(members), stages, schedule).Run();
}

}  // namespace motley::planner
