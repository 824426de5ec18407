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
    : matrix_rate_(kMatrixEfficiency * PeakOf(card, workload.dtype).flops),
      vector_rate_(kVectorEfficiency * card.fp32_flops),
      memory_rate_(kMemoryEfficiency * card.memory_bytes_per_second),
      operators_(OperatorsOf(workload, unit)) {}

double Roofline::Seconds(double matrix_flops, double vector_flops, double bytes) const {
  return std::max(matrix_flops / matrix_rate_ + vector_flops / vector_rate_, bytes / memory_rate_);
}

double Roofline::ForwardSeconds(const OpCost& work, double samples) const {
  return Seconds(samples * work.matrix_flops(), samples * (work.forward_flops - work.matrix_flops()),
                 samples * work.activation_bytes + work.weight_bytes);
}

// Backward moves twice what forward moves: gradients of inputs and weights.
double Roofline::BackwardSeconds(const OpCost& work, double samples) const {
  const double matrix = work.matrix_flops() > 0 ? work.backward_flops() : 0;
  return Seconds(samples * matrix, samples * (work.backward_flops() - matrix),
                 2 * (samples * work.activation_bytes + work.weight_bytes));
}

double Roofline::ForwardSeconds(double samples) const {
  double sum = forward_launch();
  for (const OpCost& work : operators_) sum += ForwardSeconds(work, samples);
  return sum;
}

double Roofline::BackwardSeconds(double samples) const {
  double sum = backward_launch();
  for (const OpCost& work : operators_) sum += BackwardSeconds(work, samples);
  return sum;
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
