// Writes a step graph: tasks with their dependencies, transfers by shared flow. Lanes run tasks in the order in which they are
// added.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/cluster/links.h"
#include "planner/simulator/step_graph.h"

namespace motley::planner {

// For people: unit of the model (or first layer of a ministage) and microbatch; -1 = none.
struct TaskTag {
  int32_t unit = -1, microbatch = -1;
};

class GraphWriter {
 public:
  explicit GraphWriter(const Links& links) : links_(links) {}

  int AddActor(Actor actor);
  // Makes room: about so many tasks will come.
  void Expect(size_t tasks);

  // Transfers refer to flows by number: most tasks of a step load the links in one of few ways.
  int AddFlow(Flow flow);
  double SecondsAlone(int flow) const { return flows_[flow].alone_seconds; }
  // What compute pays for the flow beside it.
  double SecondsBesideCompute(int flow) const { return (1 - flows_[flow].flow.hidden) * flows_[flow].alone_seconds; }

  // Tasks in `after` may be -1 (nothing) or repeated. The task's index.
  int32_t AddCompute(TaskKind kind, int actor, double seconds, IndexList after, TaskTag tag = {});
  // `times` flows one after another (loads and latency).
  int32_t AddTransfer(TaskKind kind, IndexList lanes, int flow, double times, IndexList after, TaskTag tag = {});

  // Fills in the loads. Links that cannot be the ones that bind are left out: those on which no flow takes longer than on
  // one kept link. Max-min shares stay what they were, since such a link's limit follows from the kept one's.
  StepGraph Finish();

 private:
  struct SharedFlow {
    Flow flow;
    double alone_seconds = 0;
  };
  struct FlowUse {
    int flow = -1;
    double scale = 1;
  };
  int32_t Add(Task task, FlowUse use);

  const Links& links_;
  StepGraph graph_;
  std::vector<SharedFlow> flows_;
  std::vector<FlowUse> uses_;  // by task
};

}  // namespace motley::planner
