#include "planner/strategies/hexiscale/hexiscale_pipeline.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <tuple>

#include "planner/published/metis_groups.h"
#include "planner/strategies/proportional_layers.h"
#include "planner/util/at.h"
#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

constexpr int64_t kMostMicrobatch = 64;
constexpr size_t kPiecesOneByOne = 6;
constexpr double kRounding = 1e-9;  // relative, between a bound and the time that it bounds
constexpr size_t kFewPieces = 4;    // up to here every uniform degree has its own order

}  // namespace

PipelineDesigner::PipelineDesigner(HexiscaleProblem* problem, EdgeWeights rates, std::vector<int> pinned,
                                   const HexiscaleLimits& limits)
    : problem_(problem), rates_(std::move(rates)), pinned_(std::move(pinned)), limits_(limits) {
  // Nodes whose links cannot be told apart.
  const Cluster& cluster = problem->setting().cluster;
  std::map<std::tuple<int, double, double, double, double, size_t>, int> classes;
  for (size_t n = 0; n < cluster.nodes.size(); ++n) {
    const ClusterNode& node = cluster.nodes[n];
    const bool alone =
        !cluster.node_bytes_per_second.empty() || !cluster.node_latency_seconds.empty() || !node.slow_pairs.empty();
    const auto key = std::make_tuple(node.region, node.device_link_bytes_per_second, node.device_link_latency_seconds,
                                     node.nic_bytes_per_second, node.nic_latency_seconds, alone ? n + 1 : 0);
    node_class_.push_back(classes.try_emplace(key, static_cast<int>(classes.size())).first->second);
  }
}

int PipelineDesigner::ClassOf(const Piece& piece) const {
  return node_class_[At(problem_->setting().cluster.devices[At(piece.devices[0])].node)];
}

PipelineDesigner::Piece PipelineDesigner::MakePiece(std::vector<int> devices) const {
  const Setting& setting = problem_->setting();
  Piece piece{std::move(devices), {}};
  const int count = static_cast<int>(piece.devices.size());
  for (int degree = 1; degree <= std::min(count, std::max(1, setting.request.max_tp)); ++degree) {
    const bool power = (degree & (degree - 1)) == 0;
    if ((power || count % degree == 0) && setting.tp_parts() % degree == 0) piece.degrees.push_back(degree);
  }
  return piece;
}

std::vector<PipelineDesigner::Piece> PipelineDesigner::PiecesOf(const std::vector<int>& devices) const {
  const Setting& setting = problem_->setting();
  std::map<std::tuple<int, int, int>, std::vector<int>> pieces;
  for (int device : devices) {
    pieces[{setting.cluster.devices[At(device)].node, setting.KindOf(device), pinned_[At(device)]}].push_back(device);
  }
  std::vector<Piece> result;
  for (auto& [key, of_piece] : pieces) result.push_back(MakePiece(std::move(of_piece)));
  std::stable_sort(result.begin(), result.end(), [&](const Piece& a, const Piece& b) {
    const auto key = [&](const Piece& p) {
      return std::make_tuple(ClassOf(p), setting.KindOf(p.devices[0]), p.devices.size(), pinned_[At(p.devices[0])]);
    };
    return key(a) < key(b);
  });
  return result;
}

std::vector<int> PipelineDesigner::Signature(const PipelineQuestion& question, const std::vector<Piece>& pieces) const {
  std::vector<int> signature = {static_cast<int>(question.batch), question.replicas, question.zero_stage};
  std::map<int, int> nodes;  // which pieces share a node
  for (const Piece& piece : pieces) {
    const int node = problem_->setting().cluster.devices[At(piece.devices[0])].node;
    signature.insert(signature.end(),
                     {ClassOf(piece), problem_->setting().KindOf(piece.devices[0]), static_cast<int>(piece.devices.size()),
                      pinned_[At(piece.devices[0])], nodes.try_emplace(node, static_cast<int>(nodes.size())).first->second});
  }
  return signature;
}

std::vector<PipelineDesigner::Case> PipelineDesigner::Cases(const PipelineQuestion& question,
                                                            const std::vector<Piece>& pieces) const {
  std::vector<Case> cases;
  Case natural{question, pieces, {}};
  for (size_t p = 0; p < pieces.size(); ++p) natural.groups.push_back({p});
  cases.push_back(std::move(natural));
  if (!limits_.metis_groups) return cases;  // the order search reaches the others from here
  Parts natural_pieces;
  for (const Piece& piece : pieces) natural_pieces.push_back(piece.devices);
  for (const std::vector<Parts>& groups : MetisGroups(rates_, question.devices, natural_pieces)) {
    Case c{question, {}, {}};
    for (const Parts& runs : groups) {
      Group group;
      for (const std::vector<int>& run : runs) {
        group.push_back(c.pieces.size());
        c.pieces.push_back(MakePiece(run));
      }
      c.groups.push_back(std::move(group));
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

PipelineDesigner::Stages PipelineDesigner::StagesOf(const Case& c, const Choice& choice) const {
  Stages stages;
  for (size_t g : choice.order) {
    for (size_t p : c.groups[g]) {
      const Piece& piece = c.pieces[p];
      const std::span<const int> devices = piece.devices;
      size_t next = 0;
      int degree = choice.degree[p];
      while (next < devices.size()) {
        // What the degree does not divide goes on with the largest degree that it allows.
        const size_t left = devices.size() - next;
        for (size_t i = piece.degrees.size(); At(degree) > left && i-- > 0;) degree = piece.degrees[i];
        stages.devices.push_back(devices.subspan(next, At(degree)));
        stages.shapes.push_back(problem_->ShapeOf(stages.devices.back()));
        next += At(degree);
      }
    }
  }
  return stages;
}

bool PipelineDesigner::ObeysPins(const Stages& stages) const {
  for (size_t s = 0; s < stages.size(); ++s) {
    for (int device : stages.devices[s]) {
      const int pin = pinned_[At(device)];
      if (pin >= 0 && pin != static_cast<int>(s)) return false;
    }
  }
  return true;
}

// In proportion to speed or to memory, the better of both that fit.
PipelineDesigner::Outcome PipelineDesigner::SplitInProportion(const Stages& stages, const std::vector<StageCost>& costs,
                                                              int64_t count) const {
  Outcome outcome;
  outcome.seconds = kInfinity;
  const Cluster& cluster = problem_->setting().cluster;
  std::vector<double> speed, memory;
  for (size_t j = 0; j < stages.size(); ++j) {
    speed.push_back(1 / costs[j].layer_seconds);
    memory.push_back(static_cast<double>(stages.devices[j].size()) *
                     static_cast<double>(cluster.kinds[At(stages.shapes[j].kind)].memory_bytes));
  }
  for (const std::vector<double>& weights : {speed, memory}) {
    const std::vector<int64_t> layers = ProportionalLayers(problem_->setting().workload.model.num_layers, weights);
    bool fits = true;
    for (size_t j = 0; j < layers.size(); ++j) fits = fits && layers[j] <= costs[j].most_layers;
    const double seconds = PipelineSeconds(costs, layers, count);
    if (fits && seconds < outcome.seconds) outcome = {seconds, layers, {}};
  }
  return outcome;
}

PipelineDesigner::Outcome PipelineDesigner::Split(const Stages& stages, int64_t microbatch, int64_t count, int replicas,
                                                  int zero_stage, double limit) {
  Outcome outcome;
  outcome.seconds = kInfinity;
  const int64_t num_layers = problem_->setting().workload.model.num_layers;
  if (static_cast<int64_t>(stages.size()) > num_layers) return outcome;
  const std::vector<StageShape>& shapes = stages.shapes;
  const auto costs = [&](const std::vector<bool>& keep) {
    return problem_->StageCosts(shapes, microbatch, count, keep, replicas, zero_stage);
  };
  const RecomputePolicy policy = limits_.recomputes_all ? RecomputePolicy::kFull : problem_->setting().request.recompute;
  const std::vector<bool> all(stages.size(), true), none(stages.size(), false);
  std::vector<bool> keep = policy == RecomputePolicy::kNone ? all : none;
  const std::vector<StageCost> frugal = costs(keep);
  int64_t most = 0;
  for (size_t j = 0; j < frugal.size(); ++j) {
    most += frugal[j].most_layers;
    if (frugal[j].most_layers >= 1) continue;
    const int64_t missing = problem_->MissingBytes(shapes[j], static_cast<int>(j), static_cast<int>(shapes.size()), microbatch,
                                                   count, keep[j], replicas, zero_stage);
    if (least_missing_bytes_ == 0 || missing < least_missing_bytes_)
      least_missing_bytes_ = missing, lacking_device_ = stages.devices[j][0];
    return outcome;
  }
  if (most < num_layers) {
    // All stages together lack layers; said of the first, in bytes of the parameters it would have to take.
    const int64_t missing = (num_layers - most) * problem_->setting().costs.UnitElements(UnitKind::kLayer) *
                            problem_->setting().costs.StateBytesPerElement();
    if (least_missing_bytes_ == 0 || missing < least_missing_bytes_)
      least_missing_bytes_ = missing, lacking_device_ = stages.devices[0][0];
    return outcome;
  }
  if (limits_.layers_in_proportion) return SplitInProportion(stages, frugal, count);
  const std::vector<StageCost> kept = policy == RecomputePolicy::kFull ? frugal : costs(all);
  if (LeastPipelineSeconds(frugal, kept, num_layers, count) * (1 - kRounding) >= limit) return outcome;
  const LayerSplit split = SplitLayersExactly(frugal, num_layers, count);
  outcome = {split.seconds, split.layers, keep};
  if (policy != RecomputePolicy::kAuto) return outcome;
  // Activations are kept where they fit beside the layers; the freed time moves layers, so once more.
  std::vector<bool> before;
  for (int round = 0; round < 3; ++round) {
    std::vector<StageCost> mixed = frugal;
    before = keep;
    for (size_t j = 0; j < mixed.size(); ++j) {
      keep[j] = kept[j].most_layers >= (round == 0 ? 1 : outcome.layers[j]);
      if (keep[j]) mixed[j] = kept[j];
    }
    if (keep == before) break;  // the same question again
    const LayerSplit other = SplitLayersExactly(mixed, num_layers, count);
    if (!other.layers.empty() && other.seconds < outcome.seconds) outcome = {other.seconds, other.layers, keep};
  }
  return outcome;
}

PipelineDesigner::Outcome PipelineDesigner::Price(const Case& c, const Choice& choice, double limit) {
  const Stages stages = StagesOf(c, choice);
  if (!ObeysPins(stages)) return {kInfinity, {}, {}};
  const int64_t count = (c.question.batch + choice.microbatch - 1) / choice.microbatch;
  return Split(stages, choice.microbatch, count, c.question.replicas, c.question.zero_stage, limit);
}

// Degrees by kind, of few pieces also one by one, then the microbatch size: what helps is kept.
bool PipelineDesigner::TuneDegrees(const Case& c, int64_t most, Choice* best, double* seconds) {
  const auto kind_of = [&](size_t p) { return problem_->setting().KindOf(c.pieces[p].devices[0]); };
  bool changed = false;
  const auto attempt = [&](const Choice& trial) {
    if (trial.degree == best->degree && trial.microbatch == best->microbatch) return;
    const double t = Price(c, trial, *seconds).seconds;
    if (t < *seconds) *seconds = t, *best = trial, changed = true;
  };
  const bool by_piece = c.pieces.size() <= kPiecesOneByOne;
  for (size_t p = 0; p < c.pieces.size(); ++p) {
    const bool first = std::none_of(c.pieces.begin(), c.pieces.begin() + static_cast<std::ptrdiff_t>(p), [&](const Piece& other) {
      return problem_->setting().KindOf(other.devices[0]) == kind_of(p);
    });
    for (int degree : c.pieces[p].degrees) {
      Choice trial = *best;
      if (first) {
        for (size_t q = 0; q < c.pieces.size(); ++q) {
          const std::vector<int>& allowed = c.pieces[q].degrees;
          if (kind_of(q) == kind_of(p) && std::find(allowed.begin(), allowed.end(), degree) != allowed.end())
            trial.degree[q] = degree;
        }
        attempt(trial);
      }
      if (!by_piece) continue;
      trial = *best;
      trial.degree[p] = degree;
      attempt(trial);
    }
  }
  for (int64_t m = 1; m <= most; m *= 2) {
    Choice trial = *best;
    trial.microbatch = m;
    attempt(trial);
  }
  return changed;
}

void PipelineDesigner::SearchCase(const Case& c, HexiscalePipeline* best, double* best_seconds) {
  Choice choice;
  choice.order.resize(c.groups.size());
  std::iota(choice.order.begin(), choice.order.end(), size_t{0});
  choice.degree.assign(c.pieces.size(), 1);
  double seconds = kInfinity;
  // Uniform degrees and microbatch sizes first, then the order, then degrees one by one, then the order again.
  const auto uniform = [&](int degree) {
    std::vector<int> result;
    for (const Piece& piece : c.pieces) {
      int of = 1;
      for (int d : piece.degrees) {
        if (d <= degree) of = d;
      }
      result.push_back(of);
    }
    return result;
  };
  const int64_t most = std::min(kMostMicrobatch, c.question.batch);
  std::set<std::vector<int>> tried;
  const bool few = c.pieces.size() <= kFewPieces;
  for (int degree = 1; degree <= std::max(1, problem_->setting().request.max_tp); degree *= 2) {
    Choice with_degree = choice;
    with_degree.degree = uniform(degree);
    if (!tried.insert(with_degree.degree).second) continue;
    std::iota(with_degree.order.begin(), with_degree.order.end(), size_t{0});
    double its_seconds = kInfinity;
    for (int64_t m = 1; m <= most; m *= 2) {
      Choice trial = with_degree;
      trial.microbatch = m;
      const double t = Price(c, trial, its_seconds).seconds;
      if (t < its_seconds) its_seconds = t, with_degree = trial;
    }
    if (few && c.groups.size() > 1) SearchOrder(c, &with_degree, &its_seconds);
    if (its_seconds < seconds) seconds = its_seconds, choice = with_degree;
  }
  if (!few) SearchOrder(c, &choice, &seconds);
  const bool changed = TuneDegrees(c, most, &choice, &seconds);
  if (changed && c.groups.size() > 1) SearchOrder(c, &choice, &seconds);
  if (seconds >= *best_seconds) return;
  *best_seconds = seconds;
  const Outcome outcome = Price(c, choice, kInfinity);
  *best = HexiscalePipeline{};
  best->microbatch = choice.microbatch;
  best->batch = c.question.batch;
  const Stages stages = StagesOf(c, choice);
  for (size_t j = 0; j < stages.size(); ++j) {
    const std::span<const int> devices = stages.devices[j];
    best->stages.push_back({{devices.begin(), devices.end()}, outcome.layers[j], !outcome.keep.empty() && outcome.keep[j]});
  }
}

HexiscalePipeline PipelineDesigner::Design(const PipelineQuestion& question) {
  const std::vector<Piece> pieces = PiecesOf(question.devices);
  std::vector<int> signature = Signature(question, pieces);
  auto [slot, is_new] = templates_.try_emplace(std::move(signature));
  Template& of = slot->second;
  if (is_new) {
    HexiscalePipeline best;
    double seconds = kInfinity;
    for (const Case& c : Cases(question, pieces)) SearchCase(c, &best, &seconds);
    of.microbatch = best.microbatch;
    for (const HexiscaleStage& stage : best.stages) {
      for (size_t p = 0; p < pieces.size(); ++p) {
        const auto at = std::find(pieces[p].devices.begin(), pieces[p].devices.end(), stage.devices[0]);
        if (at == pieces[p].devices.end()) continue;
        of.stages.push_back({p, {static_cast<size_t>(at - pieces[p].devices.begin()), stage.devices.size()}});
      }
      of.layers.push_back(stage.layers);
      of.keep.push_back(stage.keep);
    }
  }
  HexiscalePipeline pipeline;
  pipeline.microbatch = of.microbatch;
  pipeline.batch = question.batch;
  for (size_t j = 0; j < of.stages.size(); ++j) {
    const auto& [piece, range] = of.stages[j];
    const auto first = pieces[piece].devices.begin() + static_cast<std::ptrdiff_t>(range.first);
    pipeline.stages.push_back({{first, first + static_cast<std::ptrdiff_t>(range.second)}, of.layers[j], of.keep[j]});
  }
  return pipeline;
}

bool PipelineDesigner::Refit(HexiscalePipeline* pipeline, int replicas, int zero_stage) {
  Stages stages;
  for (const HexiscaleStage& stage : pipeline->stages) {
    stages.devices.push_back(stage.devices);
    stages.shapes.push_back(problem_->ShapeOf(stage.devices));
  }
  const Outcome outcome = Split(stages, pipeline->microbatch, pipeline->microbatches(), replicas, zero_stage, kInfinity);
  if (outcome.layers.empty()) return false;
  for (size_t j = 0; j < stages.size(); ++j) {
    pipeline->stages[j].layers = outcome.layers[j];
    pipeline->stages[j].keep = !outcome.keep.empty() && outcome.keep[j];
  }
  return true;
}

}  // namespace motley::planner
