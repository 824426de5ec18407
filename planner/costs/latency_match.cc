#include "planner/costs/latency_match.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/nearest.h"
#include "common/device/device_table.h"
#include "planner/cluster/cluster_table.h"
#include "planner/costs/roofline.h"

namespace motley::planner {
namespace {

// Root mean squares of the logarithm of (transferred / measured), by what differs, over all pairs of published series that differ
// in nothing else: docs/inside/profiles.md. They add up in squares. What is no better than the data sheet alone is not used.
constexpr double kOtherSwiGlu = 0.15, kOtherGelu = 0.27, kOtherLayers = 0.33;
constexpr double kLikeCard = 0.17, kOtherCard = 0.43;  // rates within an octave together, or not
constexpr double kLeastCard = 0.9 * kLikeCard;         // of any other card
constexpr double kOtherSequence = 0.09;                // an octave
constexpr double kOtherDType = 0.40;
constexpr double kRooflineAlone = 0.35;
// Not measured: the same layer in another implementation, float16 for bfloat16 on a card that runs both alike, a fit for a
// series.
constexpr double kOtherCode = 0.15, kTwinDType = 0.05, kFittedOnly = 0.05;
// A range holds nine of ten. Of transfers 1.28 deviations do: of all published series, each hidden and estimated from the others,
// 91 % lie inside. Of steps from the data sheet it is what a normal distribution has.
constexpr double kNineOfTenTransfers = 1.28, kNineOfTen = 1.645;
// How far programs differ in their passes over memory: a fused kernel spares half of them.
constexpr double kPassesDeviation = 0.7;
constexpr double kPassesSamples = 8;

bool IsDeepSpeedName(std::string_view name, std::string_view model) {
  constexpr std::string_view kPrefix = "deepspeed";
  return name.size() == kPrefix.size() + model.size() && name.starts_with(kPrefix) && name.ends_with(model);
}

// By preset's name or by one of the two names under which the published files list a model ("gpt_2.7b" and "deepspeedgpt_2.7b").
const ModelPreset* PresetOf(const std::string& model) {
  if (model.empty()) return nullptr;
  for (const ModelPreset& preset : ModelPresets()) {
    if (preset.name == model || preset.profile_name == model || IsDeepSpeedName(preset.profile_name, model)) {
      return &preset;
    }
  }
  return nullptr;
}

// What is known of the model that an entry was measured with.
struct EntryModel {
  ModelShape shape;
  bool causal = true;
  std::string_view profile_name;  // of the preset; empty for other models
};
std::optional<EntryModel> ModelOf(const LatencyEntry& entry) {
  if (entry.shape) return EntryModel{*entry.shape, true, ""};
  const ModelPreset* preset = PresetOf(entry.model);
  if (preset == nullptr) return std::nullopt;
  return EntryModel{preset->model, preset->causal, preset->profile_name};
}

// Whether a layer of both is the same work: numbers that change no product are not looked at.
bool SameWork(const ModelShape& a, ModelShape b) {
  b.max_positions = a.max_positions;
  b.norm_eps = a.norm_eps;
  b.rope_theta = a.rope_theta;
  b.rope_scaling = a.rope_scaling;
  b.query_scalar = a.query_scalar;
  b.layer_kinds = a.layer_kinds;  // a full layer's price
  return a == b;
}

std::optional<CardKind> CardOf(const std::string& name, const CardKind& wanted) {
  if (name == wanted.name) return wanted;
  const absl::StatusOr<GpuSpec> gpu = FindGpu(name);
  if (!gpu.ok()) return std::nullopt;
  CardKind kind = KindOfCard(*gpu);
  kind.name = name;
  return kind;
}

bool SameModel(const LatencyEntry& entry, const Workload& workload) {
  if (entry.shape) return workload.causal && SameWork(*entry.shape, workload.model);
  return (!entry.model.empty() && entry.model == workload.profile_name) || entry.model == workload.model_name;
}

bool Halves(DType a, DType b) {
  const auto half = [](DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; };
  return half(a) && half(b);
}

// What an entry differs in from what is asked: the variance of the transfer, and words for people.
struct Difference {
  double variance = 0;
  std::vector<std::string> words;
  void Add(double deviation, std::string word) {
    variance += deviation * deviation;
    words.push_back(std::move(word));
  }
};

// Between two models of one kind of layers. The published ones are Llamas and GPT-like, which differ in their activation.
double OtherSizes(ActivationKind activation) {
  switch (activation) {
    case ActivationKind::kGeluTanh:
      return kOtherGelu;
    case ActivationKind::kSwiGlu:
    case ActivationKind::kGeGlu:
      return kOtherSwiGlu;
  }
  std::abort();
}

double ModelDeviation(const LatencyEntry& entry, const Workload& workload) {
  const std::optional<EntryModel> model = ModelOf(entry);
  const FamilyTraits& wanted = TraitsOf(workload.model.family);
  if (!model || !SameLayers(TraitsOf(model->shape.family), wanted)) return kOtherLayers;
  if (!workload.profile_name.empty() && model->profile_name == workload.profile_name) return kOtherCode;
  // The further the sizes, the less one says about the other; at equal deviations the nearest wins.
  const double ratio = static_cast<double>(model->shape.hidden_size) / static_cast<double>(workload.model.hidden_size);
  return OtherSizes(wanted.activation) * (0.9 + 0.1 * std::abs(std::log2(ratio)));
}

double CardDeviation(const LatencyEntry& entry, const CardKind& card, DType dtype) {
  const std::optional<CardKind> other = CardOf(entry.card, card);
  if (!other) return kOtherCard;
  const double octaves = std::abs(std::log2(PeakOf(*other, dtype).flops / PeakOf(card, dtype).flops)) +
                         std::abs(std::log2(other->memory_bytes_per_second / card.memory_bytes_per_second));
  return octaves < 1 ? kLeastCard + (kLikeCard - kLeastCard) * octaves : kOtherCard;
}

// Cheap questions first; stops once the variance reaches `limit`.
Difference Compare(const LatencyEntry& entry, const CardKind& card, const Workload& workload, double limit) {
  Difference difference;
  if (entry.fitted_only) difference.variance += kFittedOnly * kFittedOnly;
  if (entry.dtype != workload.dtype) {
    const bool twins = Halves(entry.dtype, workload.dtype) && card.fp16_flops > 0 && card.fp16_flops == card.bf16_flops;
    difference.Add(twins ? kTwinDType : kOtherDType, std::string(DTypeName(entry.dtype)));
  }
  if (entry.seq_len != workload.seq_len) {
    const double octaves = std::abs(std::log2(static_cast<double>(entry.seq_len) / static_cast<double>(workload.seq_len)));
    difference.Add(kOtherSequence * std::sqrt(octaves), absl::StrCat(entry.seq_len, " tokens"));
  }
  if (difference.variance >= limit) return difference;
  if (!SameModel(entry, workload)) difference.Add(ModelDeviation(entry, workload), absl::StrCat("model ", entry.model));
  if (entry.card == card.name) return difference;
  if (difference.variance + kLeastCard * kLeastCard >= limit) {  // whichever card it is
    difference.variance = limit;
    return difference;
  }
  difference.Add(CardDeviation(entry, card, workload.dtype), absl::StrCat("card ", entry.card));
  return difference;
}

// A point at x samples of the entry's sequence is one at the same tokens of the wanted sequence.
Curve Brought(const Curve& measured, double x_factor, const Curve& from, const Curve& to) {
  std::vector<double> xs, ys;
  for (size_t i = 0; i < measured.xs().size(); ++i) {
    const double x = measured.xs()[i];
    xs.push_back(x * x_factor);
    ys.push_back(measured.ys()[i] * to.At(x * x_factor) / from.At(x));
  }
  return Curve::Isotonic(std::move(xs), std::move(ys));
}

Provenance Described(const LatencyEntry& entry, const Difference& difference) {
  Provenance provenance;
  provenance.source = entry.source;
  provenance.repairs = entry.repairs;
  if (difference.words.empty()) return provenance;
  const double spread = std::exp(kNineOfTenTransfers * std::sqrt(difference.variance));
  provenance.source =
      absl::StrCat("estimated from ", absl::StrJoin(difference.words, ", "), " (", entry.source, ") by the ratio of rooflines");
  provenance.estimated = true;
  provenance.low = 1 / spread;
  provenance.high = spread;
  return provenance;
}

LayerCurves RooflineAlone(const CardKind& card, const Workload& workload) {
  const Roofline roofline(card, workload, UnitKind::kLayer);
  const double passes = kPassesDeviation * roofline.PassesPart(kPassesSamples);
  const double spread = std::exp(kNineOfTen * std::hypot(card.parts.deviation, passes));
  const CardPeak peak = PeakOf(card, workload.dtype);
  return {roofline.Forward(),
          roofline.Backward(),
          {absl::StrCat("estimated from the data sheet of ", card.name,
                        peak.falls_back ? absl::StrCat(", which has no ", std::string(DTypeName(workload.dtype)),
                                                       " units, at its float32 rate")
                                        : ""),
           true, 1 / spread, spread},
          {}};
}

// A layer takes some times what the data sheet's peak allows, never hundreds of times: then the unit is another.
constexpr double kDoubtfulFactor = 200;

std::string DoubtOf(const Curve& forward, const CardKind& card, const Workload& workload) {
  if (forward.xs().empty()) return "";
  const double samples = forward.xs().back();
  const double least = Roofline(card, workload, UnitKind::kLayer).Forward().At(samples);
  const double factor = least > 0 ? forward.At(samples) / least : 1;
  if (factor < kDoubtfulFactor) return "";
  return absl::StrFormat(
      "a layer is said to take %.3g s forward at batch %g, %.0f times what the card's peak allows; were these "
      "milliseconds, or is the card another?",
      forward.At(samples), samples, factor);
}

// What holds for a card whatever the model: the optimizer steps elements of any model alike, and the context is the card's.
void AddOfCard(const LatencyBook& book, const CardKind& card, DType dtype, LatencyExtras* extras) {
  for (const LatencyEntry& entry : book.entries()) {
    if (entry.card != card.name) continue;
    if (!extras->context_bytes) extras->context_bytes = entry.extras.context_bytes;
    if (!extras->optimizer && entry.dtype == dtype) extras->optimizer = entry.extras.optimizer;
  }
}

}  // namespace

absl::StatusOr<LayerCurves> Transfer(const LatencyEntry& entry, const CardKind& card, const Workload& workload) {
  const Difference difference = Compare(entry, card, workload, std::numeric_limits<double>::infinity());
  if (difference.words.empty()) return LayerCurves{entry.forward, entry.backward, Described(entry, difference), entry.extras};
  Workload from = workload;
  if (!SameModel(entry, workload)) {
    const std::optional<EntryModel> model = ModelOf(entry);
    if (!model) return absl::FailedPreconditionError(absl::StrCat("the shape of model ", entry.model, " is not known"));
    from.model = model->shape;
    from.causal = model->causal;
  }
  const std::optional<CardKind> from_card = CardOf(entry.card, card);
  if (!from_card) return absl::FailedPreconditionError(absl::StrCat("card ", entry.card, " is not in the device table"));
  from.seq_len = entry.seq_len;
  from.dtype = entry.dtype;
  const Roofline source(*from_card, from, UnitKind::kLayer), target(card, workload, UnitKind::kLayer);
  const double x_factor = static_cast<double>(entry.seq_len) / static_cast<double>(workload.seq_len);
  return LayerCurves{Brought(entry.forward, x_factor, source.Forward(), target.Forward()),
                     Brought(entry.backward, x_factor, source.Backward(), target.Backward()),
                     Described(entry, difference),
                     {}};
}

std::string LikelyMistake(const LatencyEntry& entry, const std::vector<CardKind>& kinds, const Workload& workload) {
  if (!SameModel(entry, workload) && !ModelOf(entry)) {
    const std::string nearest = NearestWord(entry.model, {workload.model_name, workload.profile_name});
    if (nearest.empty()) return "";
    return absl::StrCat("model ", Quoted(entry.model), " is not known; did you mean '", nearest, "'?");
  }
  std::vector<std::string> known;
  for (const CardKind& kind : kinds) known.push_back(kind.name);
  if (std::find(known.begin(), known.end(), entry.card) != known.end() || FindGpu(entry.card).ok()) return "";
  const std::string nearest = NearestWord(entry.card, known);
  return absl::StrCat("card ", Quoted(entry.card), " is neither the cluster's nor in the device table",
                      nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?"));
}

LayerCurves MatchLayer(const CardKind& card, const Workload& workload, const LatencyBook* book) {
  std::optional<LayerCurves> best;
  double least = kRooflineAlone * kRooflineAlone;
  if (book == nullptr) return RooflineAlone(card, workload);
  // The card's own first: one that is of all that is asked leaves nothing to compare with the others.
  for (const bool own : {true, false}) {
    for (const LatencyEntry& entry : book->entries()) {
      if ((entry.card == card.name) != own || least == 0) continue;
      const double variance = Compare(entry, card, workload, least).variance;
      if (variance >= least) continue;
      absl::StatusOr<LayerCurves> curves = Transfer(entry, card, workload);
      if (!curves.ok()) continue;
      least = variance;
      best = *std::move(curves);
    }
  }
  if (!best) {
    best = RooflineAlone(card, workload);
  } else if (!best->provenance.estimated) {
    best->provenance.doubt = DoubtOf(best->forward, card, workload);
  } else if (PeakOf(card, workload.dtype).falls_back) {
    absl::StrAppend(&best->provenance.source, "; ", card.name, " has no ", std::string(DTypeName(workload.dtype)), " units");
  }
  AddOfCard(*book, card, workload.dtype, &best->extras);
  return *std::move(best);
}

}  // namespace motley::planner
