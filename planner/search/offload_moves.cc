#include "planner/search/offload_moves.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/plan/each_rank.h"

namespace motley::planner {
namespace {

using Kind = bool OffloadKinds::*;

bool SumsInTurn(const StagePlan& stage) {
  return stage.units.size() > 1 ? stage.zero_stage >= 2 : stage.units[0].ranks.size() == 1;
}

// Each unit is summed once.
bool SumsOnce(const Plan& plan) { return TraitsOf(plan.schedule).by_ministage && plan.pipelines.size() == 1; }

class OffloadMoves {
 public:
  OffloadMoves(const Setting& setting, const Plan& plan, std::vector<Move>* moves)
      : setting_(setting), plan_(plan), moves_(*moves) {}

  void AddAll() {
    const OffloadKinds may = setting_.MayOffload();
    for (const auto& [kind, what, allowed] : {std::tuple{&OffloadKinds::activations, "activations", may.activations},
                                              std::tuple{&OffloadKinds::parameters, "parameters", may.parameters},
                                              std::tuple{&OffloadKinds::optimizer, "optimizer", may.optimizer}}) {
      if (!allowed) continue;
      for (const bool on : {false, true}) AddKinds({kind}, on, what);
    }
    if (may.gradients && may.optimizer && SumsOnce(plan_) && plan_.optimizer_steps == OptimizerSteps::kAtEnd) {
      AddKinds({Kind{&OffloadKinds::gradients}}, false, "gradients");
      AddKinds({Kind{&OffloadKinds::gradients}, Kind{&OffloadKinds::optimizer}}, true, "gradients and optimizer");
    }
    AddSteps();
    AddPrefetch();
  }

 private:
  void AddKinds(const std::vector<Kind>& kinds, bool on, const char* what) {
    Plan plan = plan_;
    bool changed = false;
    ForEachStage(plan, [&](StagePlan& stage) {
      for (UnitPlan& unit : stage.units) {
        for (RankPlan& rank : unit.ranks) {
          const bool then = on && setting_.MayOffload(rank.device).any();
          for (const Kind kind : kinds) {
            if (kind == &OffloadKinds::gradients && on && !SumsInTurn(stage)) continue;
            changed |= std::exchange(rank.offload.*kind, then) != then;
          }
        }
      }
    });
    if (changed) moves_.push_back({absl::StrCat(what, on ? " offloaded" : " kept on the device"), std::move(plan)});
  }

  // A unit behind its sum, which leaves no gradients; or all of them at the step's end.
  void AddSteps() {
    const bool in_turn = plan_.optimizer_steps == OptimizerSteps::kInTurn;
    if (!in_turn && !(setting_.request.steps_in_turn && SumsOnce(plan_))) return;
    moves_.push_back({in_turn ? "stepped at the end" : "units stepped in turn", plan_});
    moves_.back().plan.optimizer_steps = in_turn ? OptimizerSteps::kAtEnd : OptimizerSteps::kInTurn;
  }

  // Further ahead, where a unit's copy takes longer than what it hides behind.
  void AddPrefetch() {
    const auto waits = [](const UnitPlan& unit) {
      return std::any_of(unit.ranks.begin(), unit.ranks.end(), [](const RankPlan& rank) { return rank.offload.any(); });
    };
    for (const int64_t prefetch : {1, 2, 4}) {
      Plan plan = plan_;
      bool changed = false;
      ForEachStage(plan, [&](StagePlan& stage) {
        if (!std::any_of(stage.units.begin(), stage.units.end(), waits)) return;
        changed |= std::exchange(stage.prefetch, prefetch) != prefetch;
      });
      if (changed) moves_.push_back({absl::StrCat("prefetch ", prefetch), std::move(plan)});
    }
  }

  const Setting& setting_;
  const Plan& plan_;
  std::vector<Move>& moves_;
};

}  // namespace

void AddOffloadMoves(const Setting& setting, const Plan& plan, std::vector<Move>* moves) {
  OffloadMoves(setting, plan, moves).AddAll();
}

void DropUnlawfulOffload(Plan* plan) {
  const bool once = SumsOnce(*plan);
  if (!once) plan->optimizer_steps = OptimizerSteps::kAtEnd;
  const bool may_wait = once && plan->optimizer_steps == OptimizerSteps::kAtEnd;
  ForEachRank(*plan, [](RankPlan& rank) { rank.offload.gradients &= rank.offload.optimizer; });
  ForEachStage(*plan, [may_wait](StagePlan& stage) {
    if (may_wait && SumsInTurn(stage)) return;
    for (UnitPlan& unit : stage.units) {
      for (RankPlan& rank : unit.ranks) rank.offload.gradients = false;
    }
  });
}

}  // namespace motley::planner
