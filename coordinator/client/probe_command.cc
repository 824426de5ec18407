#include "coordinator/client/probe_command.h"

#include <sysexits.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/files.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/offline_flags.h"
#include "coordinator/client/result_stream.h"
#include "coordinator/client/table.h"
#include "planner/costs/workload.h"

namespace motley::client {
namespace {

constexpr int64_t kMostConfigBytes = 1 << 20;

// A file goes as it is: what training refuses in it, the coordinator says.
Exit ReadModel(const std::string& model, v1::ProbeMemoryRequest* request) {
  const std::vector<planner::ModelPreset>& presets = planner::ModelPresets();
  const auto preset = std::ranges::find(presets, model, &planner::ModelPreset::name);
  request->set_model_name(model);
  if (preset != presets.end()) {
    request->set_model_config_json(ToHfConfig(preset->model));
    return {};
  }
  if (const absl::Status found = planner::LoadModel(model).status(); absl::IsNotFound(found)) return FromPlanner(found);
  return ReadText(model, kMostConfigBytes, request->mutable_model_config_json());
}

const v1::MemoryTrial* Largest(const v1::ProbedDevice& device) {
  const auto found = std::ranges::find_if(device.trials(), [&](const v1::MemoryTrial& trial) {
    return trial.samples() == device.largest_samples() && trial.seconds() > 0;
  });
  return found == device.trials().end() ? nullptr : &*found;
}

void Print(Context& context, const v1::ProbeMemoryResult& result) {
  Table table({"DEVICE", "SAMPLES", "TRIALS", "STEP", "HELD", "LEDGER", "MEMORY", "PLANS USE"});
  for (const v1::ProbedDevice& device : result.devices()) {
    const v1::MemoryTrial* const largest = Largest(device);
    table.Add({device.device(), absl::StrCat(device.largest_samples()), absl::StrCat(device.trials_size()),
               largest == nullptr ? "-" : FormatSeconds(largest->seconds()),
               largest == nullptr ? "-" : FormatBytes(largest->peak_bytes()), FormatBytes(device.ledger_bytes()),
               FormatBytes(device.memory_bytes()),
               device.usable_memory_bytes() == 0 ? "all" : FormatBytes(device.usable_memory_bytes())});
  }
  table.Print(context.out, context.screen);
  for (const v1::ProbedDevice& device : result.devices()) {
    if (!device.limited()) continue;
    PrintProse(context, CleanLine(absl::StrCat(
                            device.device(), ": the ledger would allow more than the ", Count(device.largest_samples(), "sample"),
                            " that ran, so plans of ", result.model(), " count on ", FormatBytes(device.usable_memory_bytes()),
                            " of its memory from now on; `motley node measure ", result.node(), "` takes that back")));
  }
}

}  // namespace

void AddProbeFlags(CLI::App& app, ProbeFlags* flags) {
  CLI::Option* probe = app.add_flag("--probe", flags->probe,
                                    "finds by trial how many samples of a model each device trains at once, and what plans may "
                                    "count on of its memory; no job may use the node");
  const auto of_probe = [probe](CLI::Option* option) { return option->needs(probe); };
  of_probe(app.add_option("--model", flags->model, "a HuggingFace config.json or a preset; 'motley models' lists them"))
      ->type_name("FILE");
  of_probe(app.add_option("--seq-len", flags->seq_len, "tokens a sample"))->type_name("N");
  of_probe(app.add_option("--layers", flags->layers, "trains so many of the model's layers; else all"))
      ->type_name("K")
      ->check(CLI::PositiveNumber);
  of_probe(app.add_option("--dtype", flags->dtype, "in which it computes: fp32, fp16, bf16 or fp64; else fp32"))
      ->type_name("DTYPE");
}

Exit ProbeNode(Context& context, const std::string& node, const ProbeFlags& flags) {
  std::string missing;
  if (flags.model.empty())
    absl::StrAppend(&missing, "--model is missing: a config.json or a preset ('motley models' lists them)\n");
  if (flags.seq_len == 0) absl::StrAppend(&missing, "--seq-len is missing: tokens a sample\n");
  if (!missing.empty()) return {kUsage, missing.substr(0, missing.size() - 1)};
  v1::ProbeMemoryRequest request;
  request.set_node(node);
  request.set_seq_len(flags.seq_len);
  request.set_layers(flags.layers);
  request.set_dtype(flags.dtype);
  if (Exit exit = ReadModel(flags.model, &request); exit.code != 0) return exit;
  const absl::StatusOr<std::optional<v1::ProbeMemoryResult>> result =
      AwaitResult(context, &Connection::Stub::ProbeMemory, request);
  // What does not fit is an answer, and no reason to try again later.
  if (absl::IsResourceExhausted(result.status())) return {EX_DATAERR, std::string(result.status().message())};
  if (!result.ok()) return FromServer(result.status());
  if (context.json) {
    PrintDocument(context.out, ToJson(**result));
  } else {
    Print(context, **result);
  }
  return {};
}

}  // namespace motley::client
