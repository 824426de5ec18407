#include "coordinator/store/json.h"

#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/parse_json.h"
#include "common/job/job_fields.h"

using nlohmann::json;

// nlohmann finds these by the namespace of the type.
namespace motley {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ComputePoint, microbatch, forward_seconds, backward_seconds, saved_bytes,
                                                workspace_bytes, backward_input_seconds, backward_weight_seconds,
                                                part_forward_seconds, part_backward_seconds, forward_workspace_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(UnitProfile, points, part)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CollectivePoint, bytes, skew, all_gather_seconds, reduce_scatter_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(MeasuredLink, from, to, latency_seconds, bytes_per_second)

template <typename Tag>
void to_json(json& out, const StringId<Tag>& id) {
  out = id.value();
}
template <typename Tag>
void from_json(const json& in, StringId<Tag>& id) {
  id = StringId<Tag>(in.get<std::string>());
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CheckpointOwner, job, uid, has_unnamed, adopted)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CardLoad, sm_clock_mhz, watts, power_limit_watts, at_power_limit, slowed_by_heat,
                                                slowed_by_hardware)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(MemoryTrial, samples, seconds, peak_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ComputeProfile, device, digest, embedding, layer, head,
                                                optimizer_seconds_per_element, step_overhead_seconds, context_bytes,
                                                profile_seconds, attention, load, cut_short, usable_bytes, memory_corrections,
                                                trials, trial_layers)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DataSummary, bytes, digest, kind, tokens, rows, row_tokens, greatest_token,
                                                trained_tokens, source_bytes, tokenizer)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Overlap, compute, collectives)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CollectiveProfile, devices, digest, points, links, overlap, barrier_seconds,
                                                profile_seconds)
}  // namespace motley

namespace motley::coordinator {
namespace {

// nlohmann throws; this is the boundary.
template <typename F>
auto Read(const char* what, const std::string& text, F read) -> absl::StatusOr<decltype(read(json()))> {
  const absl::StatusOr<json> parsed = ParseJson(text, absl::StrCat("stored ", what));
  if (!parsed.ok()) return absl::DataLossError(parsed.status().message());
  try {
    return read(*parsed);
  } catch (const json::exception& e) {
    return absl::DataLossError(absl::StrCat("stored ", what, " cannot be read: ", Echo(e.what())));
  }
}

// JSON has no word for a number that is not finite, and would have null for it.
json LossNumber(double number) { return std::isfinite(number) ? json(number) : json(absl::StrCat(number)); }
double FromLossNumber(const json& in) {
  double number = 0;
  if (in.is_string() && absl::SimpleAtod(in.get_ref<const std::string&>(), &number)) return number;
  if (in.is_null()) return std::numeric_limits<double>::quiet_NaN();  // as builds before this one stored it
  return in.is_number() ? in.get<double>() : 0;
}

}  // namespace

std::string ConfigToJson(const JobConfig& config) {
  JobConfig copy = config;
  json out = json::object();
  for (const JobField& field : JobFields(copy)) {
    std::visit([&](auto* value) { out[field.Path()] = *value; }, field.value);
  }
  // NaN and the like never pass Validate; text that is not UTF-8 does, and must not throw here.
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<JobConfig> ConfigFromJson(const std::string& text) {
  return Read("job configuration", text, [](const json& in) {
    JobConfig config;
    for (const JobField& field : JobFields(config)) {
      std::visit(
          [&](auto* value) {
            if (in.contains(field.Path())) in.at(field.Path()).get_to(*value);
          },
          field.value);
    }
    return config;
  });
}

std::string StepToJson(const StepStats& s) {
  json out = {{"step", s.step},
              {"epoch", s.epoch.value()},
              {"loss", LossNumber(s.loss)},
              {"grad_norm", LossNumber(s.grad_norm)},
              {"lr", s.lr},
              {"tokens_per_second", s.tokens_per_second},
              {"peak_memory_bytes", s.peak_memory_bytes},
              {"peak_memory_share", s.peak_memory_share},
              {"step_seconds", s.step_seconds},
              {"predicted_step_seconds", s.predicted_step_seconds},
              {"elapsed_seconds", s.elapsed_seconds},
              {"remaining_seconds", s.remaining_seconds},
              {"lateness_seconds", s.lateness_seconds}};
  if (s.validation_loss) out["validation_loss"] = LossNumber(*s.validation_loss);
  if (s.validation_bits_per_byte) out["validation_bits_per_byte"] = LossNumber(*s.validation_bits_per_byte);
  if (s.loss_scale > 0) out["loss_scale"] = s.loss_scale;
  if (s.host_memory_bytes > 0) out["host_memory_bytes"] = s.host_memory_bytes;
  if (s.planned_host_memory_bytes > 0) out["planned_host_memory_bytes"] = s.planned_host_memory_bytes;
  if (s.skipped) out["skipped"] = true;
  for (const RankMemory& rank : s.ranks) {
    json of_rank = {rank.device.value(), rank.held_bytes, rank.peak_bytes, rank.host_bytes};
    if (rank.memory) {
      json purposes = json::array(), on_host = json::array();
      for (const MemoryPurposeTraits& purpose : kMemoryPurposes) purposes.push_back(rank.memory->most.*purpose.bytes);
      for (const HostPurposeTraits& purpose : kHostPurposes) on_host.push_back(rank.memory->host.*purpose.bytes);
      of_rank.insert(of_rank.end(), {rank.memory->has_passes, std::move(purposes), std::move(on_host)});
    }
    out["ranks"].push_back(std::move(of_rank));
  }
  return out.dump();
}

absl::StatusOr<StepStats> StepFromJson(const std::string& text) {
  return Read("step", text, [](const json& in) {
    auto number = [&](const char* key) { return in.contains(key) ? FromLossNumber(in[key]) : 0.0; };
    StepStats s;
    s.step = in.value("step", int64_t{0});
    s.epoch = Epoch(in.value("epoch", int64_t{0}));
    s.loss = number("loss"), s.grad_norm = number("grad_norm"), s.lr = number("lr");
    s.tokens_per_second = number("tokens_per_second");
    s.peak_memory_bytes = in.value("peak_memory_bytes", int64_t{0});
    s.peak_memory_share = number("peak_memory_share");
    s.host_memory_bytes = in.value("host_memory_bytes", int64_t{0});
    s.planned_host_memory_bytes = in.value("planned_host_memory_bytes", int64_t{0});
    s.step_seconds = number("step_seconds"), s.predicted_step_seconds = number("predicted_step_seconds");
    s.elapsed_seconds = number("elapsed_seconds"), s.remaining_seconds = number("remaining_seconds");
    s.lateness_seconds = number("lateness_seconds");
    if (in.contains("validation_loss")) s.validation_loss = number("validation_loss");
    if (in.contains("validation_bits_per_byte")) s.validation_bits_per_byte = number("validation_bits_per_byte");
    s.loss_scale = number("loss_scale");
    s.skipped = in.value("skipped", false);
    for (const json& rank : in.value("ranks", json::array())) {
      RankMemory& of_rank =
          s.ranks.emplace_back(RankMemory{DeviceId(rank.at(0).get<std::string>()), rank.at(1), rank.at(2), rank.at(3), {}});
      if (rank.size() < 7) continue;
      of_rank.memory.emplace().has_passes = rank.at(4);
      for (size_t i = 0; i < kNumMemoryPurposes; ++i) of_rank.memory->most.*kMemoryPurposes[i].bytes = rank.at(5).at(i);
      for (size_t i = 0; i < kHostPurposes.size(); ++i) of_rank.memory->host.*kHostPurposes[i].bytes = rank.at(6).at(i);
    }
    return s;
  });
}

std::string DataToJson(const DataSummary& data, const DataSummary& validation) {
  if (data.digest.empty()) return "";
  json out = {{"data", data}};
  if (!validation.digest.empty()) out["validation"] = validation;
  return out.dump();
}

absl::StatusOr<std::pair<DataSummary, DataSummary>> DataFromJson(const std::string& text) {
  return Read("data", text,
              [](const json& in) { return std::pair(in.value("data", DataSummary()), in.value("validation", DataSummary())); });
}

std::string ToJson(const ComputeProfile& profile) { return json(profile).dump(); }
std::string ToJson(const CollectiveProfile& profile) { return json(profile).dump(); }
absl::StatusOr<ComputeProfile> ComputeProfileFromJson(const std::string& text) {
  return Read("compute profile", text, [](const json& in) { return in.get<ComputeProfile>(); });
}
absl::StatusOr<CollectiveProfile> CollectiveProfileFromJson(const std::string& text) {
  return Read("collective profile", text, [](const json& in) { return in.get<CollectiveProfile>(); });
}

std::string OwnerToJson(const CheckpointOwner& owner) { return owner.job.empty() ? "" : json(owner).dump(); }
absl::StatusOr<CheckpointOwner> OwnerFromJson(const std::string& text) {
  if (text.empty()) return CheckpointOwner();
  return Read("job", text, [](const json& in) { return in.get<CheckpointOwner>(); });
}

std::string RanksToJson(const std::vector<EpochRow::Rank>& ranks) {
  json out = json::array();
  for (const EpochRow::Rank& rank : ranks) out.push_back({{"device", rank.device.value()}, {"incarnation", rank.incarnation}});
  return out.dump();
}
absl::StatusOr<std::vector<EpochRow::Rank>> RanksFromJson(const std::string& text) {
  return Read("epoch", text, [](const json& in) {
    std::vector<EpochRow::Rank> ranks;
    for (const json& rank : in)
      ranks.push_back({DeviceId(rank.at("device").get<std::string>()), rank.at("incarnation").get<int64_t>()});
    return ranks;
  });
}

std::string ProgramsToJson(const std::vector<std::string>& programs) { return json(programs).dump(); }
absl::StatusOr<std::vector<std::string>> ProgramsFromJson(const std::string& text) {
  return Read("programs", text, [](const json& in) { return in.get<std::vector<std::string>>(); });
}

}  // namespace motley::coordinator
