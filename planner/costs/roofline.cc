#include "planner/costs/roofline.h"

#include <algorithm>

namespace motley::planner {
namespace {

constexpr int kDoublings = 9;  // 1 .. 256 samples

}  // namespace

CardPeak PeakOf(const CardKind& card, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      if (card.fp16_flops > 0) return {card.fp16_flops, false};
      return {card.fp32_flops, true};
    case DType::kBFloat16:
      if (card.bf16_flops > 0) return {card.bf16_flops, false};
      return {card.fp32_flops, true};
    case DType::kFloat64:
      return {card.fp32_flops / 2, true};
    case DType::kFloat32:
      break;
  }
  return {card.fp32_flops, false};
}

Roofline::Roofline(const CardKind& card, const Workload& workload, UnitKind unit)
    : vector_rate_(kVectorEfficiency * card.fp32_flops),
      memory_rate_(card.parts.memory * card.memory_bytes_per_second),
      launches_hide_(card.launches_ahead && card.parts.compared()),
      loss_on_top_(card.parts.compared()),
      operators_(OperatorsOf(workload, unit)) {
  const CardPeak peak = PeakOf(card, workload.dtype);
  const bool half_units = IsHalf(workload.dtype) && !peak.falls_back;
  const auto head_dim = static_cast<double>(workload.model.head_dim), tokens = static_cast<double>(workload.seq_len);
  matrix_rate_ = peak.flops * (half_units ? card.parts.matrix : kMatrixEfficiency);
  attention_rate_ = peak.flops * (half_units ? AttentionPart(card.parts, head_dim, tokens) : kMatrixEfficiency);
}

// The loss passes over the logits between the head's products, and cannot hide behind them.
double Roofline::Seconds(Op op, double matrix_flops, double vector_flops, double bytes) const {
  const double rate = op == Op::kAttention ? attention_rate_ : matrix_rate_;
  const double arithmetic = matrix_flops / rate + vector_flops / vector_rate_, traffic = bytes / memory_rate_;
  return loss_on_top_ && op == Op::kLmHeadLoss ? arithmetic + traffic : std::max(arithmetic, traffic);
}

double Roofline::ForwardSeconds(const OpCost& work, double samples) const {
  return Seconds(work.op, samples * work.matrix_flops(), samples * (work.forward_flops - work.matrix_flops()),
                 samples * work.activation_bytes + work.weight_bytes);
}

// Backward moves twice what forward moves: gradients of inputs and weights.
double Roofline::BackwardSeconds(const OpCost& work, double samples) const {
  const double matrix = work.matrix_flops() > 0 ? work.backward_flops() : 0;
  return Seconds(work.op, samples * matrix, samples * (work.backward_flops() - matrix),
                 2 * (samples * work.activation_bytes + work.weight_bytes));
}

double Roofline::WithLaunches(double device_seconds, double launch_seconds) const {
  return launches_hide_ ? std::max(device_seconds, launch_seconds) : device_seconds + launch_seconds;
}

double Roofline::ForwardSeconds(double samples) const {
  double sum = 0;
  for (const OpCost& work : operators_) sum += ForwardSeconds(work, samples);
  return WithLaunches(sum, forward_launch());
}

double Roofline::BackwardSeconds(double samples) const {
  double sum = 0;
  for (const OpCost& work : operators_) sum += BackwardSeconds(work, samples);
  return WithLaunches(sum, backward_launch());
}

double Roofline::PassesPart(double samples) const {
  double sum = 0, passes = 0;
  for (const OpCost& work : operators_) {
    const double seconds = ForwardSeconds(work, samples);
    sum += seconds;
    if (work.matrix_flops() <= 0) passes += seconds;
  }
  return passes / sum;
}

std::vector<double> Roofline::ForwardParts() const {
  std::vector<double> parts;
  double sum = 0;
  for (const OpCost& work : operators_) {
    parts.push_back(ForwardSeconds(work, 1));
    sum += parts.back();
  }
  for (double& part : parts) part /= sum;
  return parts;
}

Curve Roofline::Forward() const {
  std::vector<double> xs, ys;
  for (int i = 0; i < kDoublings; ++i) {
    xs.push_back(static_cast<double>(1 << i));
    ys.push_back(ForwardSeconds(xs.back()));
  }
  return Curve(std::move(xs), std::move(ys));
}

Curve Roofline::Backward() const {
  std::vector<double> xs, ys;
  for (int i = 0; i < kDoublings; ++i) {
    xs.push_back(static_cast<double>(1 << i));
    ys.push_back(BackwardSeconds(xs.back()));
  }
  return Curve(std::move(xs), std::move(ys));
}

}  // namespace motley::planner
