// What follows a step's backward: sums between pipelines and of a tied embedding, the norm, the optimizer, parameters that every
// rank needs again. Part of Lower.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/lowering/step_lowering_flows.h"
#include "planner/lowering/step_lowering_graph.h"
#include "planner/lowering/step_lowering_orders.h"
#include "planner/lowering/step_lowering_seconds.h"
#include "planner/lowering/step_lowering_view.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// What all parts of the lowering share.
struct LoweringContext {
  const Setting& setting;
  const PlanView& view;
  GraphWriter& writer;
  PlanFlows& flows;
  SecondsTable& seconds;
  // By actor: what collectives that ran beside its compute have cost it and it has not yet paid (Cluster::overlap_efficiency).
  std::vector<double>& owed_seconds;

  double overlap() const { return setting.cluster.overlap_efficiency; }
  bool tied() const { return setting.workload.model.tie_embeddings; }
  const StageView& stage(int s) const { return view.stages[s]; }
  IndexList CollectiveLanes(int stage) const;
  int64_t Elements(const Part& part, bool tied_copy) const;
  // Unit of the model for people.
  int32_t TagOf(const Part& part) const;
};

class StepEnd {
 public:
  explicit StepEnd(const LoweringContext& context);

  // The gradients of `part` (of a stage) are complete in the stage once `tasks` have ended.
  void Reduced(int stage, const Part& part, IndexList tasks);
  // Whether a chunk's optimizer follows its own reduction (Zorse section 3.1.2): parameters of one ministage after another are on
  // the device, so the others' cannot wait for a norm over all of them.
  bool Interleaved(int stage) const;
  // The stage's chunk is reduced; its optimizer step comes when the actor has gone on with the backward.
  void Defer(int stage, int chunk, int64_t elements, const IndexList& tasks);
  // The actor has computed the backward of `chunk`: earlier ones' optimizers are due. -1: all.
  void StepDeferred(int actor, int chunk);
  // After everything else: norm, optimizers, gathers.
  void Finish();

 private:
  struct Deferred {
    int chunk = 0;
    int64_t elements = 0;
    IndexList tasks;
  };
  void UnitReady(int pipeline, int64_t first, int64_t last, const IndexList& tasks);
  void Across(int64_t first, int64_t last);
  // The stage that holds a unit of the model, of every pipeline.
  std::vector<int> HoldersOf(int64_t unit) const;
  int64_t UnitElements(int64_t unit) const;
  int64_t StageElements(int stage) const;
  // A collective over these stages' ranks, one stage of each pipeline (or the two ends of one).
  int32_t AddAcross(TaskKind kind, Collective collective, const std::vector<int>& stages, int64_t elements, IndexList after,
                    int64_t unit);
  int32_t Scalars();
  int32_t Step(int actor, double elements, IndexList after);
  void GatherParameters(int stage, const IndexList& after);
  void GatherAcross(const IndexList& after);

  const LoweringContext& context_;
  const int64_t last_unit_;                      // the head
  std::vector<std::vector<IndexList>> ready_;    // by pipeline, unit of the model: empty = not yet
  std::vector<bool> across_done_;                // by unit
  std::vector<IndexList> head_tasks_;            // by pipeline: reduced tied copy, waits for the embedding
  std::vector<IndexList> embedding_tasks_;       // by pipeline: reduced embedding, waits for the copy
  IndexList final_;                              // all gradients are complete
  std::vector<std::vector<Deferred>> deferred_;  // by actor
};

}  // namespace motley::planner
