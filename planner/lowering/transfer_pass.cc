#include "planner/lowering/transfer_pass.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/lowering/hand_over_order.h"

namespace motley::planner {
namespace {

// A microbatch of a stage, by its place in the batch.
struct Slot {
  int64_t begin = 0, end = 0;
  size_t member = 0;
  int64_t microbatch = 0;
};

// Of a microbatch that comes over a border.
struct ArrivingSamples {
  int64_t not_sent = 0, not_received = 0;
};

// How far a member is.
struct Progress {
  size_t next = 0, offered = 0;           // its next step, and those that have been ready
  MemberStep* sends = nullptr;            // what it has made whose pieces have no order yet
  std::vector<ArrivingSamples> arriving;  // by place of the border (PlaceOf) and own microbatch
  std::vector<ComingPiece> coming;        // that may be received: those from first_coming on
  size_t first_coming = 0;
};

// Steps that all of a stage's members have passed.
struct Passed {
  size_t steps = 0;
  std::vector<size_t> members;  // of the stage
  std::ptrdiff_t at_next = 0;   // of them, that come to the next step
};

class TransferPass {
 public:
  TransferPass(std::vector<StageMember> members, const std::vector<StageSteps>& stages, const PipelineSchedule& schedule)
      : members_(std::move(members)),
        stages_(stages),
        schedule_(schedule),
        progress_(members_.size()),
        slots_(stages.size()),
        passed_(stages.size()),
        samples_(stages.size()),
        num_places_(stages.size(), 0) {
    for (const int32_t stage : schedule.stage_of) place_of_.push_back(num_places_[stage]++);
    for (size_t m = 0; m < members_.size(); ++m) AddMember(m);
    for (size_t s = 0; s < stages.size(); ++s) {
      std::sort(slots_[s].begin(), slots_[s].end(), [](const Slot& a, const Slot& b) { return a.begin < b.begin; });
      CountPassed(s);
    }
    for (size_t m = 0; m < members_.size(); ++m) OfferIfReady(m);
  }

  absl::StatusOr<std::vector<StageMember>> Run() {
    do {
      while (!ready_.empty()) {
        const size_t m = ready_.top().second;
        ready_.pop();
        Compute(m);
      }
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
    if (!step.hands_over() || (behind ? step.last_place() + 1 != step.num_places : step.place != 0)) return -1;
    const int32_t v = step.virtual_stage + (step.backward() == behind ? -1 : 1);
    if (v < 0 || v >= static_cast<int32_t>(schedule_.stage_of.size())) return -1;
    return schedule_.stage_of[v] == static_cast<int32_t>(members_[m].stage) ? -1 : schedule_.stage_of[v];
  }

  // Of what comes to a virtual stage of the member's: its place among those of the stage, twice.
  ArrivingSamples& Arriving(size_t m, bool backward, int32_t virtual_stage, int64_t microbatch) {
    const auto place = static_cast<size_t>(2 * place_of_[virtual_stage] + (backward ? 1 : 0));
    return progress_[m].arriving[place * MicrobatchesOf(m).size() + static_cast<size_t>(microbatch)];
  }

  void AddMember(size_t m) {
    const size_t s = members_[m].stage;
    passed_[s].members.push_back(m);
    const MemberMicrobatches& microbatches = MicrobatchesOf(m);
    progress_[m].arriving.resize(2 * static_cast<size_t>(num_places_[s]) * microbatches.size());
    for (size_t k = 0; k < microbatches.size(); ++k) {
      slots_[s].push_back({microbatches[k].first, microbatches[k].end(), m, static_cast<int64_t>(k)});
      samples_[s].resize(std::max(samples_[s].size(), static_cast<size_t>(microbatches[k].round) + 1), 0);
      samples_[s][microbatches[k].round] += microbatches[k].samples;
    }
    for (MemberStep& own : members_[m].steps) {
      const StageStep& step = StepOf(m, own);
      own.arrives = Neighbour(m, step, false) >= 0;
      if (!own.arrives) continue;
      const int64_t samples = microbatches[own.microbatch].samples;
      Arriving(m, step.backward(), step.virtual_stage, own.microbatch) = {samples, samples};
    }
  }

  void OfferIfReady(size_t m) {
    Progress& own = progress_[m];
    if (own.next < own.offered || own.next == members_[m].steps.size() || !IsReady(m)) return;
    own.offered = own.next + 1;
    ready_.emplace(members_[m].steps[own.next].end, m);
  }
  bool IsReady(size_t m) {
    const MemberStep& own = members_[m].steps[progress_[m].next];
    const StageStep& step = StepOf(m, own);
    if (step.waits_for >= 0 && passed_[members_[m].stage].steps <= static_cast<size_t>(step.waits_for)) return false;
    return !own.arrives || Arriving(m, step.backward(), step.virtual_stage, own.microbatch).not_sent == 0;
  }

  void Compute(size_t m) {
    MemberStep& own = members_[m].steps[progress_[m].next++];
    const StageStep& step = StepOf(m, own);
    if (own.arrives) Receive(m, step, &own);
    if (const int to = Neighbour(m, step, true); to >= 0) Deliver(m, step, slots_[static_cast<size_t>(to)], &own);
    OfferIfReady(m);
    const size_t s = members_[m].stage;
    if (own.step > passed_[s].steps || NextStep(m) == own.step || --passed_[s].at_next > 0) return;
    CountPassed(s);
    for (const size_t member : passed_[s].members) OfferIfReady(member);
  }

  size_t NextStep(size_t m) const {
    const std::vector<MemberStep>& steps = members_[m].steps;
    return progress_[m].next == steps.size() ? stages_[members_[m].stage].steps.size() : steps[progress_[m].next].step;
  }
  void CountPassed(size_t s) {
    Passed& passed = passed_[s];
    passed.steps = stages_[s].steps.size();
    for (const size_t m : passed.members) passed.steps = std::min(passed.steps, NextStep(m));
    passed.at_next =
        std::count_if(passed.members.begin(), passed.members.end(), [&](size_t m) { return NextStep(m) == passed.steps; });
  }

  // What the member needs now, and everything that was sent to it before that.
  void Receive(size_t m, const StageStep& step, MemberStep* own) {
    Progress& progress = progress_[m];
    const ArrivingSamples& needed = Arriving(m, step.backward(), step.virtual_stage, own->microbatch);
    for (; needed.not_received > 0; ++own->num_receives) {
      const ComingPiece& piece = progress.coming[progress.first_coming++];
      Arriving(m, piece.backward, piece.virtual_stage, piece.microbatch).not_received -= piece.samples;
      members_[m].receives.push_back(ReceiveOf(piece));
      members_[m].passed_when_sent.push_back(piece.passed);
    }
  }

  // To those of the neighbouring virtual stage who have the same samples.
  void Deliver(size_t m, const StageStep& step, const std::vector<Slot>& slots, MemberStep* own) {
    const ScheduledMicrobatch& from = MicrobatchesOf(m)[own->microbatch];
    const int32_t unit = step.backward() ? step.unit : step.last_unit() + 1, sender = static_cast<int32_t>(m);
    const int32_t virtual_stage = step.virtual_stage + (step.backward() ? -1 : 1);
    Come(hand_overs_.WithSender(sender));
    progress_[m].sends = own;
    const int64_t samples_of_round = samples_[members_[m].stage][from.round];
    auto to = std::partition_point(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.end <= from.first; });
    for (; to != slots.end() && to->begin < from.end(); ++to) {
      const int64_t first = std::max(from.first, to->begin), samples = std::min(from.end(), to->end) - first;
      const auto receiver = static_cast<int32_t>(to->member);
      Come(hand_overs_.Add(
          {step.backward(), unit, virtual_stage, to->microbatch, own->microbatch, sender, receiver, first, samples}, from.round,
          samples_of_round));
    }
  }

  // The piece as its sender and its receiver write it.
  template <typename OfGradient, typename OfActivation>
  static Operation OperationOf(const ComingPiece& piece, int64_t microbatch, int32_t peer) {
    const auto k = static_cast<int32_t>(microbatch), first = static_cast<int32_t>(piece.first);
    const auto samples = static_cast<int32_t>(piece.samples);
    if (piece.backward) return OfGradient{piece.unit, k, first, samples, peer};
    return OfActivation{piece.unit, k, first, samples, peer};
  }
  Operation SendOf(const ComingPiece& piece) const {
    return OperationOf<SendGradient, SendActivation>(piece, piece.of_microbatch, members_[piece.receiver].rank);
  }
  Operation ReceiveOf(const ComingPiece& piece) const {
    return OperationOf<ReceiveGradient, ReceiveActivation>(piece, piece.microbatch, members_[piece.sender].rank);
  }

  // The order in which these are sent, and the receivers may take them. Whether there are any.
  bool Come(std::vector<ComingPiece> pieces) {
    for (ComingPiece& piece : pieces) {
      const auto from = static_cast<size_t>(piece.sender), to = static_cast<size_t>(piece.receiver);
      piece.passed = progress_[to].next;
      ++progress_[from].sends->num_sends;
      members_[from].sends.push_back(SendOf(piece));
      progress_[to].coming.push_back(piece);
      int64_t& not_sent = Arriving(to, piece.backward, piece.virtual_stage, piece.microbatch).not_sent;
      not_sent -= piece.samples;
      if (not_sent == 0) OfferIfReady(to);
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
  std::vector<Progress> progress_;        // by member
  std::vector<std::vector<Slot>> slots_;  // by stage, in the order of their samples
  std::vector<Passed> passed_;            // by stage
  // When it is done with its next step, member.
  std::priority_queue<std::pair<double, size_t>, std::vector<std::pair<double, size_t>>, std::greater<>> ready_;
  std::vector<std::vector<int64_t>> samples_;  // by stage and round
  std::vector<int32_t> num_places_;            // by stage: its virtual stages
  std::vector<int32_t> place_of_;              // by virtual stage: among those of its stage
  HandOverOrder hand_overs_;
};

// Microbatch by microbatch a unit is a part of the microbatch's time; block by block it is a part of the time of all of them.
double EndOf(const StageStep& step, int64_t k, int64_t count, const LogicalTimes& times) {
  const LogicalSpan& own = times.At(step.kind, step.virtual_stage, k);
  if (step.round != kAllRounds) return own.begin + (own.end - own.begin) * (step.last_place() + 1) / step.num_places;
  const double begin = times.At(step.kind, step.virtual_stage, 0).begin;
  const double end = times.At(step.kind, step.virtual_stage, count - 1).end;
  return begin + ((end - begin) * step.place + (own.end - begin)) / step.num_places;
}

}  // namespace

std::vector<MemberStep> MemberSteps(const StageSteps& stage, const MemberMicrobatches& microbatches, const LogicalTimes& times,
                                    Joined joined) {
  const auto count = static_cast<int64_t>(microbatches.size());
  std::map<int64_t, int64_t> of_round;
  for (int64_t k = 0; k < count; ++k) of_round[microbatches[k].round] = k;
  std::vector<MemberStep> steps;
  for (size_t i = 0; i < stage.steps.size(); ++i) {
    const StageStep& step = stage.steps[i];
    const auto add = [&](int64_t k, int64_t more = 0) { steps.push_back({i, k, more, EndOf(step, k + more, count, times)}); };
    const bool is_inside = step.place > 0 && step.last_place() + 1 < step.num_places;
    if (step.round == kAllRounds && count > 0 && (joined == Joined::kAll || (joined == Joined::kInside && is_inside))) {
      // A unit's first backward waits for a gradient buffer, what runs again before it does not.
      const int64_t alone = step.backward() && count > 1 ? 1 : 0;
      if (alone > 0) add(0);
      add(alone, count - 1 - alone);
    } else if (step.round == kAllRounds) {
      for (int64_t k = 0; k < count; ++k) add(k);
    } else if (const auto own = of_round.find(step.round); own != of_round.end()) {
      add(own->second);
    }
  }
  return steps;
}

absl::StatusOr<std::vector<StageMember>> WithTransfers(std::vector<StageMember> members, const std::vector<StageSteps>& stages,
                                                       const PipelineSchedule& schedule) {
  if (stages.size() == 1) return members;  // nobody is handed anything
  return TransferPass(std::move(members), stages, schedule).Run();
}

}  // namespace motley::planner
