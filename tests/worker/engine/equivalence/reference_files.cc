#include "tests/worker/engine/equivalence/reference_files.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/model/parameters.h"
#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"

namespace motley::engine {
namespace {

constexpr DType kTypes[] = {DType::kFloat64, DType::kFloat32, DType::kBFloat16, DType::kFloat16};

nlohmann::ordered_json JobJson(const JobConfig& config) {
  const auto& [steps, seq_len, batch, max_norm, seed, dtype, param, reduce] = config.training;
  nlohmann::ordered_json json;
  json["training"] = {
      {"steps", steps}, {"seq_len", seq_len}, {"global_batch_size", batch},     {"max_norm", max_norm},
      {"seed", seed},   {"dtype", dtype},     {"mixed_precision_param", param}, {"mixed_precision_reduce", reduce}};
  json["optimizer"] = {{"lr", config.optimizer.lr},
                       {"beta1", config.optimizer.beta1},
                       {"beta2", config.optimizer.beta2},
                       {"eps", config.optimizer.eps},
                       {"weight_decay", config.optimizer.weight_decay}};
  json["lr_scheduler"] = {{"warmup_steps", config.lr_scheduler.warmup_steps},
                          {"decay_type", config.lr_scheduler.decay_type},
                          {"min_lr_factor", config.lr_scheduler.min_lr_factor}};
  json["data"] = {{"path", config.data.path},
                  {"validation_fraction", config.data.validation_fraction},
                  {"validation_samples", config.data.validation_samples},
                  {"validation_interval", config.data.validation_interval}};
  return json;
}

// Every tensor as HuggingFace has it.
template <typename T>
void WriteState(const TrainingState& state, const std::vector<UnitSpec>& layout, std::ofstream& file) {
  for (size_t u = 0; u < layout.size(); ++u) {
    for (const std::vector<double>& array : state[u]) {
      for (const TensorSpec& tensor : layout[u].tensors) {
        std::vector<T> named(static_cast<size_t>(tensor.num_elements));
        for (int64_t i = 0; i < tensor.num_elements; ++i) {
          named[tensor.named_element(i)] = static_cast<T>(array[tensor.offset_elements + i]);
        }
        file.write(reinterpret_cast<const char*>(named.data()), static_cast<std::streamsize>(named.size() * sizeof(T)));
      }
    }
  }
}

absl::Status WriteRun(const TinyJob& job, const std::string& plan, const TrainingRun& run, const std::filesystem::path& folder) {
  nlohmann::ordered_json json = JobJson(job.config);
  json["name"] = job.Name();
  json["plan"] = plan;
  for (const StepResult& step : run.steps) {
    json["steps"].push_back({{"step", step.step}, {"loss", step.loss}, {"grad_norm", step.grad_norm}, {"lr", step.lr}});
    if (step.has_validation_loss) json["steps"].back()["validation_loss"] = step.validation_loss;
  }
  const std::vector<UnitSpec> layout = ParameterLayout(job.model);
  for (const UnitSpec& unit : layout) {
    nlohmann::ordered_json& names = json["units"].emplace_back(nlohmann::ordered_json::array());
    for (const TensorSpec& tensor : unit.tensors) names.push_back(tensor.name);
  }
  std::ofstream(folder / "job.json") << json.dump(1) << '\n';
  for (const auto& [step, state] : run.states) {
    std::ofstream file(folder / absl::StrCat("state-", step, ".bin"), std::ios::binary);
    job.config.training.dtype == "float64" ? WriteState<double>(state, layout, file) : WriteState<float>(state, layout, file);
    if (!file.flush()) return absl::UnavailableError(absl::StrCat("cannot write into ", folder.string()));
  }
  return absl::OkStatus();
}

// By a run of its own that keeps a checkpoint of step 0.
absl::Status ExportInitial(TinyJob job, const std::filesystem::path& folder) {
  job.config.checkpoint.folder = (folder / "checkpoints").string();
  job.config.checkpoint.enable_step_zero_checkpoint = true;
  job.config.training.steps = 1;
  const planner::Plan plan = OneDevicePlan(job);
  MOTLEY_ASSIGN_OR_RETURN(const auto assignments, AssignmentsOf(job.model, job.config, plan, FourSamples(plan)));
  MOTLEY_ASSIGN_OR_RETURN(const Checkpoints kept, TrainAndKeep(assignments, std::nullopt));
  MOTLEY_RETURN_IF_ERROR(ExportHuggingFace(kept.folders.at(0), (folder / "model").string()));
  std::filesystem::remove_all(job.config.checkpoint.folder);
  return absl::OkStatus();
}

absl::Status WriteReference(Equivalence& equivalence, const TinyJob& job, const std::filesystem::path& folder) {
  const std::filesystem::path own = std::filesystem::absolute(folder) / job.Name();
  std::filesystem::create_directories(own);
  MOTLEY_RETURN_IF_ERROR(ExportInitial(job, own));
  MOTLEY_ASSIGN_OR_RETURN(const TrainingRun run, equivalence.OneDevice(job));
  return WriteRun(job, "one device", run, own);
}

absl::Status WritePlan(PlannedJob planned, int64_t steps, uint64_t delays, const std::filesystem::path& own) {
  constexpr int64_t kBetweenStates = 5;
  planned.job.config.training.steps = steps;
  planned.job.config.checkpoint.interval = kBetweenStates;
  std::filesystem::create_directories(own);
  MOTLEY_RETURN_IF_ERROR(ExportInitial(planned.job, own));
  MOTLEY_ASSIGN_OR_RETURN(const auto assignments,
                          AssignmentsOf(planned.job.model, planned.job.config, planned.plan, FourSamples(planned.plan)));
  MOTLEY_ASSIGN_OR_RETURN(const TrainingRun run, TrainOnThreads(assignments, delays));
  return WriteRun(planned.job, ToText(planned), run, own);
}

}  // namespace

absl::Status WriteReferences(const std::filesystem::path& folder) {
  const std::filesystem::path data = std::filesystem::absolute(folder);
  WriteTinyText(data);
  WriteTinyRows(data);
  Equivalence equivalence;
  for (const ModelFamily family : {ModelFamily::kGpt2, ModelFamily::kLlama}) {
    for (const TinySize size : kTinySizes) {
      for (const DType dtype : kTypes) {
        MOTLEY_RETURN_IF_ERROR(WriteReference(equivalence, MakeTinyJob(family, size, dtype, data), folder));
      }
    }
    for (const DType dtype : kTypes) {
      MOTLEY_RETURN_IF_ERROR(WriteReference(equivalence, OnRows(MakeTinyJob(family, kTinySizes[0], dtype, data)), folder));
    }
  }
  return absl::OkStatus();
}

absl::Status WritePlanned(const std::filesystem::path& folder, uint64_t seed, int64_t plans, int64_t steps) {
  const std::filesystem::path data = std::filesystem::absolute(folder);
  WriteTinyRows(data);
  for (int64_t n = 0; n < plans; ++n) {
    const std::filesystem::path own = data / absl::StrFormat("plan-%02d", n);
    MOTLEY_RETURN_IF_ERROR(WritePlan(DrawFamilyOnRowsJob(seed, n, data), steps, seed + static_cast<uint64_t>(n), own));
  }
  return absl::OkStatus();
}

}  // namespace motley::engine
