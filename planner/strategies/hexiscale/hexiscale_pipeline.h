// Second phase of HexiScale (arXiv 2409.01143 section 4.3): the stages of one pipeline from its devices.
//
//   (i)   devices are grouped by bandwidth: every node's devices of one kind, and (where asked for) by METIS;
//   (ii)  inside a node a group becomes stages of equal tensor-parallel degree, chosen by cost;
//   (iii) groups are ordered by top-tau search: from every group on, to the tau best connected that are left, recursively.
//
// Layers are split exactly within memory (hexiscale_layers.h). The paper does not say how; its table 2 follows speed, its memory
// model memory: where layers go in proportion, the better of both is taken. Pipelines of the same shape (kinds, counts, links)
// are designed once. Not thread-safe: it remembers.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "planner/groups/min_cut.h"
#include "planner/published/hexiscale_limits.h"
#include "planner/strategies/hexiscale/hexiscale_problem.h"

namespace motley::planner {

struct PipelineQuestion {
  std::vector<int> devices;  // ascending
  int64_t batch = 0;         // samples that the pipeline will about compute
  int replicas = 1;          // pipelines of the layout
  int zero_stage = 0;        // between them
};

class PipelineDesigner {
 public:
  // `rates`: of all devices. `pinned`: by device its stage or -1.
  PipelineDesigner(HexiscaleProblem* problem, EdgeWeights rates, std::vector<int> pinned, const HexiscaleLimits& limits);

  // The fastest pipeline found for that batch; without stages: none fits.
  HexiscalePipeline Design(const PipelineQuestion& question);
  // Layers anew, with activations kept where memory allows (tuned), for the batch the pipeline now has.
  bool Refit(HexiscalePipeline* pipeline, int replicas, int zero_stage);

  int64_t least_missing_bytes() const { return least_missing_bytes_; }  // of the stages that did not fit; 0 = all did
  int lacking_device() const { return lacking_device_; }

 private:
  struct Piece {  // of the pipeline's devices: one node, one kind
    std::vector<int> devices;
    std::vector<int> degrees;  // allowed, ascending
  };
  using Group = std::vector<size_t>;  // pieces
  struct Choice {
    std::vector<size_t> order;  // of groups
    std::vector<int> degree;    // by piece
    int64_t microbatch = 1;
  };
  struct Outcome {
    double seconds = 0;
    std::vector<int64_t> layers;
    std::vector<bool> keep;
  };
  // Stages in the pipeline's order; the devices are a piece's (or a pipeline's).
  struct Stages {
    std::vector<StageShape> shapes;
    std::vector<std::span<const int>> devices;
    size_t size() const { return shapes.size(); }
  };
  // One grouping of a question's devices while it is being searched.
  struct Case {
    const PipelineQuestion& question;
    std::vector<Piece> pieces;
    std::vector<Group> groups;
  };

  std::vector<int> Signature(const PipelineQuestion& question, const std::vector<Piece>& pieces) const;
  int ClassOf(const Piece& piece) const;
  Piece MakePiece(std::vector<int> devices) const;
  std::vector<Piece> PiecesOf(const std::vector<int>& devices) const;
  std::vector<Case> Cases(const PipelineQuestion& question, const std::vector<Piece>& pieces) const;
  void SearchCase(const Case& c, HexiscalePipeline* best, double* best_seconds);
  bool TuneDegrees(const Case& c, int64_t most, Choice* best, double* seconds);  // true: something changed
  void SearchOrder(const Case& c, Choice* choice, double* seconds);
  void Extend(const Case& c, std::vector<size_t>* path, Choice* choice, double* seconds, int* paths);
  Stages StagesOf(const Case& c, const Choice& choice) const;
  // `limit`: a longer time is of no use, the outcome is infinite where that is certain.
  Outcome Price(const Case& c, const Choice& choice, double limit);
  Outcome Split(const Stages& stages, int64_t microbatch, int64_t count, int replicas, int zero_stage, double limit);
  Outcome SplitInProportion(const Stages& stages, const std::vector<StageCost>& costs, int64_t count) const;
  bool ObeysPins(const Stages& stages) const;
  double Between(const Case& c, size_t a, size_t b) const;  // best rate between two groups

  HexiscaleProblem* problem_;
  EdgeWeights rates_;
  std::vector<int> pinned_;
  HexiscaleLimits limits_;
  std::vector<int> node_class_;
  // By signature: stages as (piece, first device in it, number), so that another pipeline of this shape can use them.
  struct Template {
    std::vector<std::pair<size_t, std::pair<size_t, size_t>>> stages;
    std::vector<int64_t> layers;
    std::vector<bool> keep;
    int64_t microbatch = 1;
  };
  std::map<std::vector<int>, Template> templates_;
  int64_t least_missing_bytes_ = 0;
  int lacking_device_ = -1;
};

}  // namespace motley::planner
