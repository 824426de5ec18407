// The published file nests model -> card -> sequence -> dtype. A leaf is one of
//   5.6                       time of one sample, forward and backward together
//   [8.1, 2.2]                fit of forward and backward together: slope, intercept
//   [[sf, if], [sb, ib]]      fits of forward and of backward
//   [[..], [..], [f1, f2, ..], [b1, b2, ..]]   the fits and the series at batch 1, 2, ...
// in milliseconds. The second form is described elsewhere as forward and backward, but its numbers agree with the sum of the
// third form's where both exist (gpt_1.3b on an A6000: 8.14, 2.19 against 3.27 + 4.81, 0.60 + 1.66). docs/inside/profiles.md.
#include "planner/costs/latency_book.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/parse_json.h"
#include "common/base/status_macros.h"
#include "common/device/device_table.h"
#include "planner/costs/profile_series.h"

namespace motley::planner {
namespace {

using Json = nlohmann::json;

constexpr double kSecondsPerMillisecond = 1e-3;
// Forward's part of forward and backward: the median of the published series (10th and 90th percentile: 0.26 and 0.37).
constexpr double kForwardPart = 0.32;

absl::StatusOr<std::vector<double>> Numbers(const Json& json, const std::string& path) {
  std::vector<double> numbers;
  if (!json.is_array()) return absl::InvalidArgumentError(absl::StrCat(path, ": must be a list of numbers"));
  for (const Json& value : json) {
    if (!value.is_number())
      return absl::InvalidArgumentError(absl::StrCat(path, ": must be a list of numbers, has a ", value.type_name()));
    numbers.push_back(value.get<double>());
  }
  return numbers;
}

// Fills the curves of one leaf. `path` names it in messages.
class Leaf {
 public:
  Leaf(const Json& json, const std::string& path, std::vector<std::string>* repairs)
      : json_(json), path_(path), repairs_(repairs) {}

  absl::Status Read(LatencyEntry* entry) const {
    if (json_.is_number()) return ReadTotal(json_.get<double>(), 0, entry);
    if (json_.is_array() && json_.size() == 2 && json_[0].is_number() && json_[1].is_number()) {
      return ReadTotal(json_[0].get<double>(), json_[1].get<double>(), entry);
    }
    const bool fits = json_.is_array() && (json_.size() == 2 || json_.size() == 4) && json_[0].is_array() && json_[1].is_array();
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat(path_,
                                                     ": must be a number, [slope, intercept], two such fits (forward, backward), "
                                                     "or two fits and two series of milliseconds"));
    }
    entry->fitted_only = json_.size() == 2;
    MOTLEY_ASSIGN_OR_RETURN(entry->forward, Pass(0, "forward"));
    MOTLEY_ASSIGN_OR_RETURN(entry->backward, Pass(1, "backward"));
    return absl::OkStatus();
  }

 private:
  absl::Status ReadTotal(double slope, double intercept, LatencyEntry* entry) const {
    entry->fitted_only = true;
    MOTLEY_ASSIGN_OR_RETURN(const Curve total,
                            CurveOfFit(slope * kSecondsPerMillisecond, intercept * kSecondsPerMillisecond, path_, repairs_));
    repairs_->push_back(absl::StrCat(path_, ": forward and backward together; split ", kForwardPart, " to ", 1 - kForwardPart));
    entry->forward = total.Scaled(1, kForwardPart);
    entry->backward = total.Scaled(1, 1 - kForwardPart);
    return absl::OkStatus();
  }
  absl::StatusOr<Curve> Pass(size_t which, const std::string& name) const {
    const std::string path = absl::StrCat(path_, "/", name);
    if (json_.size() == 4) {
      MOTLEY_ASSIGN_OR_RETURN(std::vector<double> seconds, Numbers(json_[which + 2], path));
      std::vector<double> samples;
      for (double& s : seconds) {
        s *= kSecondsPerMillisecond;
        samples.push_back(static_cast<double>(samples.size() + 1));
      }
      return CurveOfSeries(std::move(samples), std::move(seconds), path, repairs_);
    }
    MOTLEY_ASSIGN_OR_RETURN(const std::vector<double> fit, Numbers(json_[which], path));
    if (fit.size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": a fit is [slope, intercept], got ", fit.size(), " numbers"));
    }
    return CurveOfFit(fit[0] * kSecondsPerMillisecond, fit[1] * kSecondsPerMillisecond, path, repairs_);
  }

  const Json& json_;
  const std::string& path_;
  std::vector<std::string>* repairs_;
};

absl::StatusOr<int64_t> SequenceOf(const std::string& text, const std::string& path) {
  int64_t seq_len = 0;
  if (!absl::SimpleAtoi(text, &seq_len) || seq_len < 1 || seq_len > kMostTokens) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": '", text.substr(0, 40), "' is not a sequence length"));
  }
  return seq_len;
}

absl::StatusOr<DType> DTypeOf(const std::string& text, const std::string& path) {
  absl::StatusOr<DType> dtype = ParseDType(text.substr(0, 40));
  if (!dtype.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", dtype.status().message()));
  return dtype;
}

absl::Status NotAnObject(const std::string& path, const char* of) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": must be an object by ", of));
}

// Calls `add` for every leaf.
template <typename Add>
absl::Status WalkPublished(const Json& root, const std::string& source, Add add) {
  for (const auto& [model, cards] : root.items()) {
    const std::string model_path = absl::StrCat(source, ": ", model);
    if (!cards.is_object()) return NotAnObject(model_path, "card");
    for (const auto& [card, sequences] : cards.items()) {
      const std::string card_path = absl::StrCat(model_path, "/", card);
      if (!sequences.is_object()) return NotAnObject(card_path, "sequence length");
      for (const auto& [sequence, dtypes] : sequences.items()) {
        const std::string sequence_path = absl::StrCat(card_path, "/", sequence);
        if (!dtypes.is_object()) return NotAnObject(sequence_path, "dtype");
        MOTLEY_ASSIGN_OR_RETURN(const int64_t seq_len, SequenceOf(sequence, sequence_path));
        for (const auto& [name, json] : dtypes.items()) {
          LatencyEntry entry;
          entry.model = model;
          entry.card = ProfileCardName(card);
          entry.seq_len = seq_len;
          entry.source = absl::StrCat(sequence_path, "/", name);
          MOTLEY_ASSIGN_OR_RETURN(entry.dtype, DTypeOf(name, entry.source));
          MOTLEY_RETURN_IF_ERROR(Leaf(json, entry.source, &entry.repairs).Read(&entry));
          add(std::move(entry));
        }
      }
    }
  }
  return absl::OkStatus();
}

// A series of Motley's own form as curves; messages and repairs name the list.
absl::StatusOr<UnitCurves> CurvesOf(const MeasuredSeries& series, const std::string& path, std::vector<std::string>* repairs) {
  UnitCurves curves;
  MOTLEY_ASSIGN_OR_RETURN(curves.forward,
                          CurveOfSeries(series.samples, series.forward_seconds, path + ".forward_seconds", repairs));
  MOTLEY_ASSIGN_OR_RETURN(curves.backward,
                          CurveOfSeries(series.samples, series.backward_seconds, path + ".backward_seconds", repairs));
  return curves;
}

absl::StatusOr<PartialCurves> PartialOf(const MeasuredSeries& series, const std::string& path,
                                        std::vector<std::string>* repairs) {
  PartialCurves curves;
  const auto curve_of = [&](const std::vector<double>& seconds, const char* key) {
    return CurveOfSeries(series.samples, seconds, path + key, repairs);
  };
  if (!series.backward_input_seconds.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(curves.backward_input, curve_of(series.backward_input_seconds, ".backward_input_seconds"));
    MOTLEY_ASSIGN_OR_RETURN(curves.backward_weight, curve_of(series.backward_weight_seconds, ".backward_weight_seconds"));
  }
  if (series.part > 0) {
    curves.part = series.part;
    MOTLEY_ASSIGN_OR_RETURN(curves.part_forward, curve_of(series.part_forward_seconds, ".part_forward_seconds"));
    MOTLEY_ASSIGN_OR_RETURN(curves.part_backward, curve_of(series.part_backward_seconds, ".part_backward_seconds"));
  }
  return curves;
}

UnitBytes BytesOf(const MeasuredSeries& series) {
  UnitBytes bytes;
  for (size_t i = 0; i < series.saved_bytes.size(); ++i) {
    bytes.saved_per_sample = std::max(bytes.saved_per_sample, static_cast<double>(series.saved_bytes[i]) / series.samples[i]);
  }
  const auto curve_of = [&](const std::vector<int64_t>& of_samples) {
    return of_samples.empty() ? Curve() : Curve(series.samples, {of_samples.begin(), of_samples.end()});
  };
  bytes.workspace = curve_of(series.workspace_bytes);
  bytes.forward_workspace = curve_of(series.forward_workspace_bytes);
  return bytes;
}

absl::StatusOr<LatencyEntry> OwnEntry(const MotleyProfile& profile, const MeasuredCard& card, const std::string& path) {
  LatencyEntry entry;
  std::vector<std::string>* const repairs = &entry.repairs;
  entry.model = card.model;
  entry.card = ProfileCardName(card.card);
  entry.seq_len = card.seq_len;
  entry.dtype = card.dtype;
  entry.source =
      absl::StrCat(path, " (", entry.model, "/", entry.card, "/", entry.seq_len, "/", std::string(DTypeName(entry.dtype)), ")");
  MOTLEY_ASSIGN_OR_RETURN(UnitCurves layer, CurvesOf(card.layer, path, repairs));
  entry.forward = std::move(layer.forward);
  entry.backward = std::move(layer.backward);
  if (const auto shape = profile.models.find(card.model); shape != profile.models.end()) entry.shape = shape->second;
  if (card.embedding) {
    MOTLEY_ASSIGN_OR_RETURN(entry.extras.embedding, CurvesOf(*card.embedding, path + ".embedding", repairs));
  }
  if (card.head) {
    MOTLEY_ASSIGN_OR_RETURN(entry.extras.head, CurvesOf(*card.head, path + ".head", repairs));
  }
  struct Unit {
    UnitKind kind;
    const MeasuredSeries* series;
    std::string path;
  };
  for (const Unit& unit :
       {Unit{UnitKind::kEmbedding, card.embedding ? &*card.embedding : nullptr, path + ".embedding"},
        Unit{UnitKind::kLayer, &card.layer, path}, Unit{UnitKind::kHead, card.head ? &*card.head : nullptr, path + ".head"}}) {
    if (unit.series == nullptr) continue;
    const auto index = static_cast<size_t>(unit.kind);
    entry.extras.bytes[index] = BytesOf(*unit.series);
    MOTLEY_ASSIGN_OR_RETURN(entry.extras.partial[index], PartialOf(*unit.series, unit.path, repairs));
  }
  entry.extras.optimizer = card.optimizer;
  entry.extras.context_bytes = card.context_bytes;
  return entry;
}

using EntryKey = std::tuple<std::string, std::string, int64_t, DType>;
EntryKey Key(const LatencyEntry& entry) { return {entry.model, entry.card, entry.seq_len, entry.dtype}; }

template <typename Add>
absl::Status WalkOwn(const MotleyProfile& profile, const std::string& source, Add add) {
  std::map<EntryKey, size_t> seen;
  for (size_t i = 0; i < profile.cards.size(); ++i) {
    const std::string path = absl::StrCat(source, ": layers[", i, "]");
    MOTLEY_ASSIGN_OR_RETURN(LatencyEntry entry, OwnEntry(profile, profile.cards[i], path));
    if (const auto [first, added] = seen.emplace(Key(entry), i); !added) {
      return absl::InvalidArgumentError(absl::StrCat(path, " is of the same model, card, sequence and dtype as layers[",
                                                     first->second, "]: ", entry.source, "; leave one of them out"));
    }
    add(std::move(entry));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ProfileCardName(const std::string& label) {
  if (const absl::StatusOr<GpuSpec> gpu = FindGpu(label); gpu.ok()) return std::string(gpu->name);
  // "a100x80" is the A100 with 80 GB.
  const size_t x = label.rfind('x');
  if (x == std::string::npos) return label;
  const absl::StatusOr<GpuSpec> gpu = FindGpu(absl::StrCat(label.substr(0, x), "-", label.substr(x + 1), "GB"));
  return gpu.ok() ? std::string(gpu->name) : label;
}

void LatencyBook::Add(LatencyEntry entry) {
  const auto less = [](const LatencyEntry& a, const LatencyEntry& b) { return Key(a) < Key(b); };
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), entry, less);
  if (at == entries_.end() || Key(*at) != Key(entry)) {
    entries_.insert(at, std::move(entry));
    return;
  }
  // Within a file one card may have two labels; the longer series is the later measurement.
  const bool better = entry.forward.xs().size() > at->forward.xs().size();
  std::string repair =
      absl::StrCat(better ? entry.source : at->source, ": used; the same as ", better ? at->source : entry.source);
  if (better) *at = std::move(entry);
  at->repairs.push_back(std::move(repair));
}

absl::StatusOr<LatencyBook> LatencyBook::Parse(std::string_view json, std::string_view source) {
  const std::string name(source);
  if (static_cast<int64_t>(json.size()) > kMostProfileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has ", json.size(), " bytes; profiles have at most ",
                                                   kMostProfileBytes, "; give a file of latencies"));
  }
  MOTLEY_ASSIGN_OR_RETURN(const Json root, ParseJson(json, source));
  if (!root.is_object()) return absl::InvalidArgumentError(absl::StrCat(name, ": must be a JSON object by model"));
  LatencyBook book;
  if (IsMotleyProfile(root)) {
    MOTLEY_ASSIGN_OR_RETURN(const MotleyProfile profile, ReadMotleyProfile(root, name));
    return Of(profile, name);
  }
  MOTLEY_RETURN_IF_ERROR(WalkPublished(root, name, [&book](LatencyEntry entry) { book.Add(std::move(entry)); }));
  return book;
}

absl::StatusOr<LatencyBook> LatencyBook::Of(const MotleyProfile& profile, const std::string& source) {
  LatencyBook book;
  MOTLEY_RETURN_IF_ERROR(WalkOwn(profile, source, [&book](LatencyEntry entry) { book.Add(std::move(entry)); }));
  return book;
}

absl::StatusOr<LatencyBook> LatencyBook::Load(const std::string& path) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kMostProfileBytes));
  return Parse(text, path);
}

LatencyBook LatencyBook::Of(LatencyEntry entry) {
  LatencyBook book;
  book.entries_.push_back(std::move(entry));
  return book;
}

void LatencyBook::Merge(LatencyBook other) {
  for (LatencyEntry& entry : other.entries_) {
    const auto less = [](const LatencyEntry& a, const LatencyEntry& b) { return Key(a) < Key(b); };
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), entry, less);
    if (at != entries_.end() && Key(*at) == Key(entry)) {
      *at = std::move(entry);
    } else {
      entries_.insert(at, std::move(entry));
    }
  }
}

std::vector<std::string> LatencyBook::repairs() const {
  std::vector<std::string> all;
  for (const LatencyEntry& entry : entries_) all.insert(all.end(), entry.repairs.begin(), entry.repairs.end());
  return all;
}

const LatencyEntry* LatencyBook::Find(std::string_view model, std::string_view card, int64_t seq_len, DType dtype) const {
  const auto wanted = std::make_tuple(model, card, seq_len, dtype);
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), wanted, [](const LatencyEntry& entry, const auto& key) {
    return std::make_tuple(std::string_view(entry.model), std::string_view(entry.card), entry.seq_len, entry.dtype) < key;
  });
  if (at == entries_.end() || at->model != model || at->card != card || at->seq_len != seq_len || at->dtype != dtype)
    return nullptr;
  return &*at;
}

}  // namespace motley::planner
