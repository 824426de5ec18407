#include "planner/costs/costs.h"

#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "common/model/layer_table.h"
#include "planner/costs/latency_match.h"
#include "planner/costs/layer_operators.h"
#include "planner/costs/roofline.h"

namespace motley::planner {
namespace {

constexpr std::array kUnitKinds = {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kHead};
constexpr size_t Index(UnitKind unit) { return static_cast<size_t>(unit); }

// AdamW reads parameter, gradient and two moments and writes three of them in float32; with half types the master copy takes
// the parameter's place and the half parameter is written beside it. Memory-bound on every card.
constexpr double kOptimizerTraffic32 = 28, kOptimizerTraffic16 = 28, kOptimizerTraffic64 = 56;

// What CUDA and cuBLAS take on a card before the first tensor. An order of magnitude from running systems, not measured
// here.
constexpr int64_t kContextBytes = int64_t{768} << 20;  // where no profile says it
constexpr double kHalf = 0.5;                          // of a backward that no profile has in two

double OptimizerTraffic(DType dtype) {
  if (dtype == DType::kFloat64) return kOptimizerTraffic64;
  return dtype == DType::kFloat32 ? kOptimizerTraffic32 : kOptimizerTraffic16;
}

// Never negative, so a cast rounds as llround does, several times as fast.
int64_t ToBytes(double bytes) { return static_cast<int64_t>(bytes + 0.5); }

// The unit's roofline at the efficiency that the measured layer shows on this card.
Curve AtEfficiencyOf(const Curve& layer, const Curve& layer_roofline, const Curve& unit_roofline) {
  if (layer.empty()) return unit_roofline;
  std::vector<double> xs, ys;
  for (const double x : unit_roofline.xs()) {
    xs.push_back(x);
    ys.push_back(unit_roofline.At(x) * layer.At(x) / layer_roofline.At(x));
  }
  return Curve::Isotonic(std::move(xs), std::move(ys));
}

// The part of a curve that is there before the first sample: the line through the series' ends, at zero.
double LaunchPart(const Curve& curve, double least) {
  if (curve.xs().empty()) return least;
  const double x0 = curve.xs().front(), x1 = curve.xs().back(), y0 = curve.ys().front(), y1 = curve.ys().back();
  const double slope = x1 > x0 ? (y1 - y0) / (x1 - x0) : y0 / x0;
  return std::clamp(y0 - slope * x0, std::min(least, y0 / 2), 0.9 * y0);
}

}  // namespace

absl::StatusOr<Costs> Costs::Create(const Cluster& cluster, const Workload& workload, const LatencyBook* book) {
  MOTLEY_RETURN_IF_ERROR(Validate(cluster));
  MOTLEY_RETURN_IF_ERROR(Validate(workload));
  Costs costs;
  costs.workload_ = workload;
  costs.layout_ = ParameterLayout(workload.model);
  for (const UnitSpec& unit : costs.layout_) {
    costs.elements_[Index(unit.kind)] = unit.num_elements;
    costs.divided_elements_[Index(unit.kind)] = unit.divided_elements;
    costs.total_elements_ += unit.num_elements;
  }
  costs.CountBytesAndFlops();
  for (const CardKind& card : cluster.kinds) costs.AddKind(card, book);
  for (int k = 0; k < costs.num_kinds(); ++k) costs.kinds_[k].nccl = SiteOf(cluster, k);
  return costs;
}

Costs Costs::OfKinds(const std::vector<int>& kinds, const Cluster& cluster) const {
  Costs costs = *this;
  costs.kinds_.clear();
  for (const int kind : kinds) costs.kinds_.push_back(kinds_[kind]);
  for (int k = 0; k < costs.num_kinds(); ++k) costs.kinds_[k].nccl = SiteOf(cluster, k);
  return costs;
}

void Costs::CountBytesAndFlops() {
  const ModelShape& model = workload_.model;
  for (const UnitKind unit : kUnitKinds) {
    double matrix_flops = 0, full_flops = 0;
    double largest_divided = 0, largest_whole = static_cast<double>(BoundaryBytes(1));
    for (const OpCost& work : OperatorsOf(workload_, unit)) {
      saved_[Index(unit)].push_back({work.op, 0, static_cast<double>(work.output_bytes), work.divided, work.output_divided});
      matrix_flops += work.matrix_flops();
      full_flops += work.matrix_flops() * (work.op == Op::kAttention && workload_.causal ? 2 : 1);
      if (unit == UnitKind::kLayer) layer_flops_.push_back({work.op, work.matrix_flops(), work.divided});
      if (work.op == Op::kLmHeadLoss) continue;  // in chunks, below
      // Backward holds the gradients of an operator's input and output.
      (work.divided ? largest_divided : largest_whole) =
          std::max(work.divided ? largest_divided : largest_whole, work.activation_bytes);
    }
    // A few columns are there once for all samples.
    const auto of = [&](int64_t n) { return motley::WaitingBytes(model, unit, n, workload_.seq_len, workload_.dtype); };
    Waiting& waiting = waiting_[Index(unit)];
    waiting.whole = static_cast<double>(of(2) - of(1));
    const auto add_divided = [&](LayerValue value) {
      if (IsDivided(value))
        waiting.divided += static_cast<double>(ValueBytes(model, value, 1, workload_.seq_len, workload_.dtype));
    };
    if (unit == UnitKind::kLayer) {
      const std::span<const LayerOperator> rows = LayerOperatorsOf(TraitsOf(model.family));
      WaitingValues(rows).ForEach(add_divided);
      WaitingGradients(rows).ForEach(add_divided);
    }
    workspace_divided_[Index(unit)] = largest_divided;
    workspace_whole_[Index(unit)] = largest_whole;
    const double units = unit == UnitKind::kLayer ? static_cast<double>(model.num_layers) : 1;
    model_flops_ += units * 3 * matrix_flops;
    published_flops_ += units * (unit == UnitKind::kLayer ? 4 : 3) * full_flops;
  }
}

void Costs::AddKind(const CardKind& card, const LatencyBook* book) {
  Kind kind;
  kind.launches_ahead = card.launches_ahead;
  LayerCurves layer = MatchLayer(card, workload_, book);
  const Roofline layer_roofline(card, workload_, UnitKind::kLayer);
  const Curve forward = layer_roofline.Forward(), backward = layer_roofline.Backward();
  for (const UnitKind unit : kUnitKinds) {
    const Roofline roofline(card, workload_, unit);
    const std::optional<UnitCurves>& measured = unit == UnitKind::kEmbedding ? layer.extras.embedding : layer.extras.head;
    UnitCurves whole;
    if (unit == UnitKind::kLayer) {
      whole = {layer.forward, layer.backward};
    } else if (measured) {
      whole = *measured;
    } else {
      whole = {AtEfficiencyOf(layer.forward, forward, roofline.Forward()),
               AtEfficiencyOf(layer.backward, backward, roofline.Backward())};
    }
    AddUnit(roofline, unit, std::move(whole), layer.extras.partial[Index(unit)], &kind);
  }
  kind.optimizer = layer.extras.optimizer.value_or(
      MeasuredOptimizer{OptimizerTraffic(workload_.dtype) / (kMemoryEfficiency * card.memory_bytes_per_second), 0});
  kind.context_bytes = layer.extras.context_bytes.value_or(kContextBytes);
  AddMeasuredBytes(layer.extras, &kind);
  kind.provenance = std::move(layer.provenance);
  kinds_.push_back(std::move(kind));
}

void Costs::AddUnit(const Roofline& roofline, UnitKind unit, UnitCurves whole, const PartialCurves& partial, Kind* kind) {
  const size_t i = Index(unit);
  const std::vector<double> parts = roofline.ForwardParts();
  double undivided = 0;
  for (size_t k = 0; k < parts.size(); ++k) {
    const OpCost& work = roofline.operators()[k];
    if (!work.divided) undivided += parts[k];
    if (unit == UnitKind::kLayer)
      kind->operators.push_back({work.op, parts[k], static_cast<double>(work.output_bytes), work.divided, work.output_divided});
  }
  kind->forward_launch[i] = LaunchPart(whole.forward, roofline.forward_launch());
  const double backward_launch = LaunchPart(whole.backward, roofline.backward_launch());
  kind->forward[i] = ShareCurve(std::move(whole.forward), kind->forward_launch[i], undivided);
  kind->backward[i] = ShareCurve(std::move(whole.backward), backward_launch, undivided);
  if (partial.part > 0) {
    kind->forward[i].SetPart(partial.part, partial.part_forward);
    kind->backward[i].SetPart(partial.part, partial.part_backward);
  }
  if (!partial.backward_input.empty()) {
    kind->halves[i] =
        BackwardHalves{kind->backward[i].Like(partial.backward_input), kind->backward[i].Like(partial.backward_weight)};
  }
}

double Costs::ForwardSeconds(int kind, UnitKind unit, double samples, double share) const {
  return share >= 1 && TrainsInBackward(unit) ? 0 : EvaluationSeconds(kind, unit, samples, share);
}

double Costs::EvaluationSeconds(int kind, UnitKind unit, double samples, double share) const {
  return At(kind).forward[Index(unit)].At(samples, share);
}

double Costs::BackwardSeconds(int kind, UnitKind unit, double samples, double share) const {
  return At(kind).backward[Index(unit)].At(samples, share);
}

double Costs::BackwardInputSeconds(int kind, UnitKind unit, double samples, double share) const {
  const std::optional<BackwardHalves>& halves = At(kind).halves[Index(unit)];
  return halves ? halves->input.At(samples, share) : kHalf * BackwardSeconds(kind, unit, samples, share);
}

double Costs::BackwardWeightSeconds(int kind, UnitKind unit, double samples, double share) const {
  const std::optional<BackwardHalves>& halves = At(kind).halves[Index(unit)];
  return halves ? halves->weight.At(samples, share) : kHalf * BackwardSeconds(kind, unit, samples, share);
}

double Costs::RecomputeSeconds(int kind, UnitKind unit, OpSet ops, double samples, double share) const {
  if (unit == UnitKind::kLayer) ops = RunAgain(ops, share);
  if (ops.empty() || samples <= 0) return 0;
  if (ops.all() || unit != UnitKind::kLayer) return ForwardSeconds(kind, unit, samples, share);
  const Kind& at = At(kind);
  const double seconds = OperatorSeconds(at, ops, samples, share);
  const ShareCurve& forward = at.forward[Index(unit)];
  if (share >= 1 || !forward.has_part()) return seconds;
  // All operators together take the share's forward; and a share of an operator no less than that share of it.
  const double as_measured = forward.At(samples, share) / forward.Modelled(samples, share);
  return std::max(as_measured * seconds, share * OperatorSeconds(at, ops, samples, 1));
}

OpSet Costs::RunAgain(OpSet ops, double share) const {
  return share < 1 ? WithoutSums(ops, TraitsOf(workload_.model.family)) : ops;
}

double Costs::OperatorSeconds(const Kind& at, OpSet ops, double samples, double share) const {
  const size_t layer = Index(UnitKind::kLayer);
  const double seconds = at.forward[layer].whole().At(samples);
  const double launch = std::min(seconds, at.forward_launch[layer]);
  const OpSet again = RecomputedWith(ops, TraitsOf(workload_.model.family));
  double part = 0, launches = 0;
  for (const OperatorCost& cost : at.operators) {
    if (!again.Has(cost.op)) continue;
    part += cost.forward_part * (cost.divided ? share : 1);
    launches += 1;
  }
  return launch * launches / static_cast<double>(at.operators.size()) + (seconds - launch) * part;
}

void Costs::ScaleSeconds(int kind, double factor) {
  Kind& at = kinds_[kind];
  for (auto* curves : {&at.forward, &at.backward}) {
    for (ShareCurve& curve : *curves) curve.Scale(factor);
  }
  for (std::optional<BackwardHalves>& halves : at.halves) {
    if (!halves) continue;
    halves->input.Scale(factor);
    halves->weight.Scale(factor);
  }
  for (double& launch : at.forward_launch) launch *= factor;
  at.optimizer.seconds_per_element *= factor;
  at.optimizer.launch_seconds *= factor;
}

double Costs::OptimizerSeconds(int kind, double elements) const {
  const MeasuredOptimizer& optimizer = At(kind).optimizer;
  return elements > 0 ? optimizer.launch_seconds + optimizer.seconds_per_element * elements : 0;
}

int64_t Costs::UnitElements(UnitKind unit) const { return elements_[Index(unit)]; }

int64_t Costs::UnitElements(UnitKind unit, double share) const {
  const int64_t divided = divided_elements_[Index(unit)];
  return elements_[Index(unit)] - static_cast<int64_t>((1 - share) * static_cast<double>(divided));
}

double Costs::RingBytes(Collective collective) const {
  const auto gathered = static_cast<double>(element_bytes()), reduced = static_cast<double>(gradient_bytes());
  if (collective == Collective::kAllReduce) return (gathered + reduced) / 2;
  return collective == Collective::kAllGather ? gathered : reduced;
}

HostState Costs::InHost(const OffloadKinds& offloads, double owned) const {
  const auto elements = static_cast<int64_t>(owned + 0.5);
  if (workload_.state == StateKeeping::kEngine) return HostStateOf(offloads, elements, gradient_bytes(), element_bytes());
  HostState state;
  // Of half types the master is among the moments: a step makes what is gathered, and does not need it.
  if (offloads.parameters) (IsHalf(workload_.dtype) ? state.cast : state.parameter) = elements * element_bytes();
  if (offloads.gradients) state.gradient = elements * gradient_bytes();
  if (offloads.optimizer) state.moment = elements * optimizer_bytes_per_element() / 2;
  return state;
}

OwnedBytes Costs::OnDevice(const OffloadKinds& offloads, int64_t owned) const {
  const HostState away = InHost(offloads, static_cast<double>(owned));
  const bool is_master = casts_gathered();  // the only copy of the parameters
  return {is_master ? 0 : element_bytes() * owned - away.parameter - away.cast, gradient_bytes() * owned - away.gradient,
          optimizer_bytes_per_element() * owned - 2 * away.moment - (is_master ? away.parameter : 0)};
}

int64_t Costs::optimizer_bytes_per_element() const {
  if (workload_.state_bytes_per_parameter > 0) {
    return workload_.state_bytes_per_parameter - (casts_gathered() ? 0 : element_bytes()) - gradient_bytes();
  }
  switch (workload_.dtype) {
    case DType::kFloat64:
      return 16;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 12;
    case DType::kFloat32:
      break;
  }
  return 8;
}

// What was measured is of whole units that keep everything; its ratio to what is computed then holds for parts too.
void Costs::AddMeasuredBytes(const LatencyExtras& extras, Kind* kind) const {
  for (const UnitKind unit : kUnitKinds) {
    const UnitBytes& measured = extras.bytes[Index(unit)];
    kind->workspace[Index(unit)] = measured.workspace;
    kind->forward_workspace[Index(unit)] = measured.forward_workspace;
    const double computed = ComputedSavedBytes(unit, OpSet::None(), 1);
    if (measured.saved_per_sample <= 0 || computed <= 0) continue;
    const double input = unit == UnitKind::kEmbedding ? 0 : static_cast<double>(BoundaryBytes(1));
    kind->saved_factor[Index(unit)] = std::max(0.0, measured.saved_per_sample - input) / computed;
  }
  for (OperatorCost& op : kind->operators) op.saved_bytes_per_sample *= kind->saved_factor[Index(UnitKind::kLayer)];
}

double Costs::ComputedSavedBytes(UnitKind unit, OpSet recomputed, double share) const {
  if (share >= 1 && TrainsInBackward(unit)) return 0;
  double bytes = 0;
  for (const OperatorCost& cost : saved_[Index(unit)]) {
    if (!recomputed.Has(cost.op)) bytes += cost.saved_bytes_per_sample * (cost.saved_divided ? share : 1);
  }
  return bytes;
}

double Costs::SavedOfSample(int kind, UnitKind unit, OpSet recomputed, double share) const {
  return recomputed.all() ? 0 : At(kind).saved_factor[Index(unit)] * ComputedSavedBytes(unit, recomputed, share);
}

int64_t Costs::WaitingBytes(int kind, UnitKind unit, double samples, double share) const {
  const Waiting& waiting = waiting_[Index(unit)];
  const double bytes = waiting.whole - (share < 1 ? (1 - share) * waiting.divided : 0);
  return ToBytes(At(kind).saved_factor[Index(unit)] * samples * bytes);
}

double Costs::SavedFactor(int kind, UnitKind unit) const { return At(kind).saved_factor[Index(unit)]; }

int64_t Costs::BoundaryBytes(double samples) const {
  return ToBytes(samples * static_cast<double>(motley::BoundaryBytes(workload_.model, 1, workload_.seq_len, workload_.dtype)));
}

int64_t Costs::RowBytes(double samples) const {
  const int64_t size = std::max(element_bytes(), SizeOfBytes(DType::kFloat32));
  return ToBytes(samples * static_cast<double>(kNumbersOfALogitsRow * workload_.seq_len * size));
}

int64_t Costs::WorkspaceBytes(int kind, UnitKind unit, double samples, double share) const {
  if (samples <= 0) return 0;
  const Curve& measured = At(kind).workspace[Index(unit)];
  if (measured.empty()) return ToBytes(ComputedWorkspaceBytes(unit, samples, share));
  const double part = share >= 1 ? 1 : ComputedWorkspaceBytes(unit, samples, share) / ComputedWorkspaceBytes(unit, samples, 1);
  return ToBytes(part * measured.At(samples));
}

int64_t Costs::ForwardWorkspaceBytes(int kind, UnitKind unit, double samples) const {
  const Curve& measured = At(kind).forward_workspace[Index(unit)];
  return measured.empty() || samples <= 0 ? 0 : ToBytes(measured.At(samples));
}

double Costs::ComputedWorkspaceBytes(UnitKind unit, double samples, double share) const {
  const size_t i = Index(unit);
  double bytes = samples * std::max(workspace_divided_[i] * share, workspace_whole_[i]);
  if (unit == UnitKind::kHead) {
    // A chunk's logits in compute dtype and in float32 for the loss.
    const double rows = std::min(samples * static_cast<double>(workload_.seq_len), static_cast<double>(kHeadChunkTokens));
    const int64_t words = std::llround(share * static_cast<double>(workload_.model.vocab_size));
    bytes += rows * static_cast<double>(LogitColumns(words)) * static_cast<double>(element_bytes() + 4);
  }
  return bytes;
}

int64_t Costs::ContextBytes(int kind) const { return At(kind).context_bytes; }

double Costs::ModelFlops(double samples) const { return model_flops_ * samples; }

double Costs::RecomputeFlops(OpSet ops, double samples, double share) const {
  const OpSet again = RecomputedWith(RunAgain(ops, share), TraitsOf(workload_.model.family));
  double flops = 0;
  for (const OperatorFlops& of : layer_flops_) {
    if (again.Has(of.op)) flops += of.forward * (of.divided ? share : 1);
  }
  return flops * samples;
}

double Costs::PublishedFlops(double samples) const { return published_flops_ * samples; }

}  // namespace motley::planner
