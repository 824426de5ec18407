// Estimated seconds of a unit from a card's data sheet: every operator takes the longer of arithmetic and memory traffic, after a
// launch (Williams et al., Roofline, CACM 2009). docs/inside/profiles.md says how far it is from measured layers. Of families of
// cards that were compared with steps launches go on ahead and the loss comes on top: docs/inside/card-parts.md.
#pragma once

#include <vector>

#include "common/device/card_parts.h"
#include "planner/cluster/cluster.h"
#include "planner/costs/layer_operators.h"
#include "planner/costs/workload.h"
#include "planner/util/curve.h"

namespace motley::planner {

// What an eager framework spends on an operator before the card works on it.
inline constexpr double kLaunchSeconds = 10e-6;
// Parts of the data sheet that large kernels reach where no family of cards says otherwise (common/device/card_parts.h), and
// always with float32's units.
inline constexpr double kMatrixEfficiency = CardParts().matrix, kVectorEfficiency = 0.3, kMemoryEfficiency = CardParts().memory;

// Peak of a card for a dtype; `falls_back`: the card has no such unit and computes in float32 (float64 at half of it).
struct CardPeak {
  double flops = 0;
  bool falls_back = false;
};
CardPeak PeakOf(const CardKind& card, DType dtype);

class Roofline {
 public:
  Roofline(const CardKind& card, const Workload& workload, UnitKind unit);

  double ForwardSeconds(double samples) const;
  double BackwardSeconds(double samples) const;
  // Launches of one forward or backward pass.
  double forward_launch() const { return kLaunchSeconds * static_cast<double>(operators_.size()); }
  double backward_launch() const { return 2 * forward_launch(); }
  // Of a layer's forward at so many samples, what is no product of matrices: passes over memory.
  double PassesPart(double samples) const;
  // Of one sample's forward, without launch, by operator.
  std::vector<double> ForwardParts() const;
  const std::vector<OpCost>& operators() const { return operators_; }

  // Sampled at 1, 2, 4, ... samples.
  Curve Forward() const;
  Curve Backward() const;

 private:
  double Seconds(Op op, double matrix_flops, double vector_flops, double bytes) const;
  double WithLaunches(double device_seconds, double launch_seconds) const;
  double ForwardSeconds(const OpCost& work, double samples) const;
  double BackwardSeconds(const OpCost& work, double samples) const;

  double matrix_rate_ = 0, attention_rate_ = 0, vector_rate_ = 0, memory_rate_ = 0;
  bool launches_hide_ = false, loss_on_top_ = false;
  std::vector<OpCost> operators_;
};

}  // namespace motley::planner
