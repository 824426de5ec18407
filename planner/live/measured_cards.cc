#include "planner/live/measured_cards.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley::planner {
namespace {

// Devices whose times are no further apart are one card: measuring the same card twice is off by about as much, strategies group
// by card, and the mean of several measurements says more of each than its own.
constexpr double kAlike = 0.02;
// Emulated ones that declare the same: what tells their measurements apart is the host, which has other work too. A host that is
// further off does not keep the declaration, and counts as it is.
constexpr double kAlikeByDeclaration = 0.1;

// What drivers and libraries take of a card is hardly twice the same.
constexpr double kAlikeContext = 0.1;

// `beside`: what is computed in the same step, where that takes longer.
bool Alike(double a, double b, double tolerance, double beside = 0) {
  return std::abs(a - b) <= tolerance * std::max({std::abs(a), std::abs(b), beside});
}

// At the sizes that both have.
bool Alike(const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& beside, double tolerance) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!Alike(a[i], b[i], tolerance, beside[std::min(i, beside.size() - 1)])) return false;
  }
  return true;
}

// A mean is of the same figures. How many sizes there was time for says nothing of a card.
bool SameFigures(const MeasuredSeries& a, const MeasuredSeries& b) {
  const size_t both = std::min(a.samples.size(), b.samples.size());
  return std::equal(a.samples.begin(), a.samples.begin() + static_cast<std::ptrdiff_t>(both), b.samples.begin()) &&
         a.part == b.part && a.backward_input_seconds.empty() == b.backward_input_seconds.empty() &&
         a.saved_bytes.empty() == b.saved_bytes.empty() && a.workspace_bytes.empty() == b.workspace_bytes.empty();
}

// Whole passes decide: half of a backward may take next to nothing, and then twice as much the next time. So may an embedding's
// pass beside a layer's: what is far off of itself and little beside a layer changes no step.
bool Alike(const std::optional<MeasuredSeries>& a, const std::optional<MeasuredSeries>& b, const MeasuredSeries& layer,
           double tolerance) {
  if (!a || !b) return a.has_value() == b.has_value();
  return SameFigures(*a, *b) && Alike(a->forward_seconds, b->forward_seconds, layer.forward_seconds, tolerance) &&
         Alike(a->backward_seconds, b->backward_seconds, layer.backward_seconds, tolerance);
}

// `of`: how many measurements `mean` then is of.
void AddToMean(double value, double of, double* mean) { *mean += (value - *mean) / of; }

// Sizes that it has not yet stand as they were measured.
void AddToMean(const std::vector<double>& values, double of, std::vector<double>* mean) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i == mean->size()) mean->push_back(values[i]);
    AddToMean(values[i], of, &(*mean)[i]);
  }
}

void KeepMost(const std::vector<int64_t>& values, std::vector<int64_t>* most) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i == most->size()) most->push_back(i == 0 ? 0 : most->back());
    (*most)[i] = std::max((*most)[i], values[i]);
  }
}

// Of times the mean, of bytes the most.
void AddToMean(const MeasuredSeries& other, double of, MeasuredSeries* mean) {
  for (std::vector<double> MeasuredSeries::*seconds :
       {&MeasuredSeries::forward_seconds, &MeasuredSeries::backward_seconds, &MeasuredSeries::backward_input_seconds,
        &MeasuredSeries::backward_weight_seconds, &MeasuredSeries::part_forward_seconds,
        &MeasuredSeries::part_backward_seconds}) {
    AddToMean(other.*seconds, of, &(mean->*seconds));
  }
  if (other.samples.size() > mean->samples.size()) mean->samples = other.samples;
  KeepMost(other.saved_bytes, &mean->saved_bytes);
  KeepMost(other.workspace_bytes, &mean->workspace_bytes);
  KeepMost(other.forward_workspace_bytes, &mean->forward_workspace_bytes);
}

bool Alike(std::optional<int64_t> a, std::optional<int64_t> b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return Alike(static_cast<double>(*a), static_cast<double>(*b), kAlikeContext);
}

// What held any of them is said of all.
void AddToMean(const CardLoad& other, double of, CardLoad* mean) {
  AddToMean(other.watts, of, &mean->watts);
  mean->sm_clock_mhz += (other.sm_clock_mhz - mean->sm_clock_mhz) / static_cast<int64_t>(of);
  mean->at_power_limit |= other.at_power_limit;
  mean->slowed_by_heat |= other.slowed_by_heat;
  mean->slowed_by_hardware |= other.slowed_by_hardware;
}

void AddToMean(const MeasuredCard& other, double of, MeasuredCard* mean) {
  AddToMean(other.load, of, &mean->load);
  AddToMean(other.layer, of, &mean->layer);
  if (mean->embedding) AddToMean(*other.embedding, of, &*mean->embedding);
  if (mean->head) AddToMean(*other.head, of, &*mean->head);
  AddToMean(other.optimizer->seconds_per_element, of, &mean->optimizer->seconds_per_element);
  AddToMean(other.optimizer->launch_seconds, of, &mean->optimizer->launch_seconds);
  if (mean->context_bytes) mean->context_bytes = std::max(*mean->context_bytes, *other.context_bytes);
}

bool Alike(const MeasuredCard& a, const MeasuredCard& b, double tolerance) {
  return Alike(a.layer, b.layer, a.layer, tolerance) && Alike(a.embedding, b.embedding, a.layer, tolerance) &&
         Alike(a.head, b.head, a.layer, tolerance) &&
         Alike(a.optimizer->seconds_per_element, b.optimizer->seconds_per_element, tolerance) &&
         Alike(a.optimizer->launch_seconds, b.optimizer->launch_seconds, tolerance) && Alike(a.context_bytes, b.context_bytes);
}

// Rates follow from what was measured, or were declared and then count exactly.
bool Alike(const CardKind& a, const CardKind& b, bool declared) {
  return a.memory_bytes == b.memory_bytes &&
         (declared ? a.fp32_flops == b.fp32_flops : Alike(a.fp32_flops, b.fp32_flops, kAlike));
}

}  // namespace

int MeasuredCards::Add(const DeviceDescription& device, CardKind kind, MeasuredCard card) {
  const std::string label = ProfileCardName(device.model.empty() ? "device" : device.model);
  const bool declared = device.flops_per_second > 0;
  for (size_t k = 0; k < cluster_.kinds.size(); ++k) {
    if (labels_[k] != label || libtorches_[k] != device.libtorch) continue;
    const bool same = declared && device.launch == launches_[k];
    if (!Alike(kind, cluster_.kinds[k], declared)) continue;
    if (!Alike(card, firsts_[k], same ? kAlikeByDeclaration : kAlike)) continue;
    AddToMean(card, ++measurements_[k], &profile_.cards[k]);
    return static_cast<int>(k);
  }
  kind.name = label;
  for (int i = 2; Taken(kind.name); ++i) kind.name = absl::StrCat(label, "-", i);
  card.card = kind.name;
  if (kind.name != label) kind.card = label;
  labels_.push_back(label);
  libtorches_.push_back(device.libtorch);
  launches_.push_back(device.launch);
  firsts_.push_back(card);
  measurements_.push_back(1);
  cluster_.kinds.push_back(std::move(kind));
  profile_.cards.push_back(std::move(card));
  return static_cast<int>(cluster_.kinds.size()) - 1;
}

bool MeasuredCards::Taken(const std::string& name) const {
  return ProfileCardName(name) != name ||
         std::any_of(cluster_.kinds.begin(), cluster_.kinds.end(), [&](const CardKind& kind) { return kind.name == name; });
}

}  // namespace motley::planner
