// The schedule: what every rank of a plan computes, in which order, and which samples each microbatch stands for. A plain value
// that is stored with the plan. docs/inside/plan-to-step.md says how it comes about and what follows from it.
//
// A pipeline's layers are cut into *virtual stages* (PyTorch's stages, Megatron-LM's model chunks), numbered in the order in
// which a microbatch passes them; a stage computes one or more. A stage has *rounds*. All its ranks go through them in one order,
// and enter the collectives of every round; a rank has at most one microbatch in a round, and none where it has fewer than
// others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace motley::planner {

enum class ActionKind {
  kForward,         // F
  kBackward,        // B: of input and weights
  kInputGradient,   // I: the first half of a backward that is split
  kWeightGradient,  // W: the second
};

// Rounds [first, last) of one virtual stage. Of several rounds, all pass it together: microbatch by microbatch where the stage's
// parameters stay, block by block where blocks are gathered in turn.
struct Action {
  ActionKind kind = ActionKind::kForward;
  int32_t virtual_stage = 0;
  int64_t first = 0, last = 0;
  friend bool operator==(const Action&, const Action&) = default;
};

// Samples [first, first + samples) of the pipeline's batch, in a round of the stage.
struct ScheduledMicrobatch {
  int64_t first = 0, samples = 0, round = 0;
  int64_t end() const { return first + samples; }
  friend bool operator==(const ScheduledMicrobatch&, const ScheduledMicrobatch&) = default;
};

// Of one data-parallel member of a stage (a rank, or the ranks of a tensor-parallel group together), in its order of rounds.
using MemberMicrobatches = std::vector<ScheduledMicrobatch>;

struct StageSchedule {
  std::vector<Action> actions;
  std::vector<MemberMicrobatches> members;  // in the plan's order
  friend bool operator==(const StageSchedule&, const StageSchedule&) = default;
};

struct PipelineSchedule {
  std::vector<int32_t> stage_of;  // by virtual stage
  std::vector<StageSchedule> stages;
  // Of stages that gather and sum their units in turn: sums with other pipelines stand where they can begin, beside that, and not
  // behind it all. Of all pipelines or none.
  bool sums_at_once = false;
  friend bool operator==(const PipelineSchedule&, const PipelineSchedule&) = default;
};

struct Schedule {
  std::vector<PipelineSchedule> pipelines;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Rounds of the stage: one more than the last that a member has a microbatch in.
int64_t NumRounds(const StageSchedule& stage);

// What one member computes: the stage's actions over the numbers of its own microbatches, without those that it has none in.
std::vector<Action> ActionsOf(const StageSchedule& stage, size_t member);

// The most forwards of a virtual stage and microbatch that a member keeps without their backward (a split one's weights).
int64_t MostInFlight(const StageSchedule& stage, size_t member);

// "0F0 0F1 1F0-7 1B0": virtual stage, kind, first and last round. What recurs with its numbers shifted is written once:
// "(0F2 0B0)x250+1" is 250 times, 1 further each time.
std::string ToText(const std::vector<Action>& actions);
// INVALID_ARGUMENT names the word and what is expected; more than `most` actions are refused before they are made.
absl::StatusOr<std::vector<Action>> ParseActions(std::string_view text, int64_t most);

// "4@0 4@8 3@16": samples, and the first of them; ":5" behind it where the round is not the microbatch's number.
std::string ToText(const MemberMicrobatches& microbatches);
absl::StatusOr<MemberMicrobatches> ParseMicrobatches(std::string_view text);

}  // namespace motley::planner
