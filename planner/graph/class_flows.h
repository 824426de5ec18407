// What classes of ranks move as flows of the graph, each made once: collectives of groups, tensor-parallel all-reduces, host
// copies, sums between stages and pipelines.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "planner/graph/graph_writer.h"
#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// A collective of a stage's units over `bytes` of the unsharded array. Ranks of tensor-parallel units hold slices: the array is
// cut where any unit cuts it, the ranks that hold a piece make a ring that carries it, the rings run together. So a single rank
// beside a pair is in two rings, each with half the bytes. By shares of the state for gather and reduce-scatter; an all-reduce is
// even.
Flow GroupFlow(const Links& links, const PlanView& view, const StageView& stage, Collective collective, double bytes);

// A collective over several sets of ranks (a unit each) that each hold `bytes` spread over them: as many rings as the
// smallest set has ranks, each through one rank of every set, each with its part of the bytes.
Flow AcrossFlow(const Links& links, const std::vector<std::vector<int>>& sets, Collective collective, double bytes);

// A tied embedding whose ends are two stages, where the engine runs the plan: the ranks of both in one ring, the owners' shares
// all at the embedding's end. `bytes`: of the table.
Flow TiedFlow(const Setting& setting, const PlanView& view, int embedding_stage, int head_stage, Collective collective,
              double bytes);

std::vector<int> DevicesOf(const PlanView& view, const StageView& stage);

class ClassFlows {
 public:
  ClassFlows(const Setting& setting, const PlanView& view, GraphWriter* writer)
      : setting_(setting), view_(view), writer_(writer) {}

  int Group(int stage, Collective collective, int64_t elements);
  // One all-reduce of `microbatch` samples' activations in every unit of the actor.
  int TensorParallel(int actor, int64_t microbatch);
  // Bytes of each rank of the actor.
  int ToHost(int actor, double bytes) { return Host(actor, bytes, true); }
  int FromHost(int actor, double bytes) { return Host(actor, bytes, false); }

 private:
  int Host(int actor, double bytes, bool to_host);
  template <typename Cache, typename Make>
  int Cached(Cache* cache, const typename Cache::key_type& key, Make make);

  const Setting& setting_;
  const PlanView& view_;
  GraphWriter* writer_;
  std::map<std::tuple<int, int, int64_t>, int> group_;
  std::map<std::tuple<int, int64_t>, int> tensor_parallel_;
  std::map<std::tuple<int, double, bool>, int> host_;
};

}  // namespace motley::planner
