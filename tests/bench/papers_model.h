// Runs one cell of a published table through the planner: the authors' cluster, model and latencies, our strategy as published,
// the one simulator. The constants that no paper gives are few and global.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "planner/cluster/cluster_file.h"
#include "planner/pricing/price.h"
#include "planner/setting/setting.h"
#include "planner/strategies/catalog.h"
#include "tests/bench/papers_tables.h"

namespace motley::bench {

// What stands between a published layer in a loop and a training step, and between a list rate and a collective.
struct Constants {
  int compute_percent = 100;     // of every measured second
  int collective_percent = 100;  // of the links' list rates that collectives reach
};

inline constexpr int64_t kAssumedHostBytes = int64_t{512} << 30;

// Where and how a table was measured.
struct Experiment {
  std::string_view name;
  std::string_view cluster;  // preset
  int64_t seq_len = 0;
  DType dtype = DType::kFloat32;
  bool in_tflops = false;  // cells are TFLOP/s, else samples a second
  const planner::LatencyBook* book = nullptr;
};

struct Outcome {
  absl::Status status;  // why there is no plan
  double seconds = 0;   // of the simulated step
  double published_seconds = 0;
  bool estimated = false;
  std::string binds;
  double ratio() const { return published_seconds > 0 ? seconds / published_seconds : 0; }
};

// The authors' runs had a vocabulary of 49,152 and an untied head: model_stats.json's totals less the layers.
inline absl::StatusOr<planner::Workload> AuthorsWorkload(const Experiment& experiment, const Cell& cell) {
  MOTLEY_ASSIGN_OR_RETURN(planner::Workload workload, planner::LoadModel(std::string(cell.model)));
  if (!cell.model.starts_with("vit")) {
    workload.model.vocab_size = 49152;
    workload.model.tie_embeddings = false;
  }
  workload.model.max_positions = std::max(workload.model.max_positions, experiment.seq_len);
  workload.global_batch = cell.batch;
  workload.seq_len = experiment.seq_len;
  workload.dtype = experiment.dtype;
  return workload;
}

// Fills `outcome` as far as it gets; the status says why there is no step time.
inline absl::Status Simulate(const Experiment& experiment, std::string_view strategy, const Cell& cell,
                             const Constants& constants, Outcome* outcome) {
  MOTLEY_ASSIGN_OR_RETURN(planner::Cluster cluster, planner::LoadCluster(std::string(experiment.cluster)));
  MOTLEY_ASSIGN_OR_RETURN(planner::Workload workload, AuthorsWorkload(experiment, cell));
  cluster.collective_efficiency *= 0.01 * constants.collective_percent;
  // Cephalo and Zorse keep boundaries in host memory; the papers say it suffices and not how much there is.
  for (planner::ClusterNode& node : cluster.nodes) {
    if (node.host_memory_bytes == 0) node.host_memory_bytes = kAssumedHostBytes;
    if (node.host_link_bytes_per_second == 0) node.host_link_bytes_per_second = node.device_link_bytes_per_second;
  }
  planner::PlanRequest request;
  request.fidelity = planner::Fidelity::kPublished;
  request.strategy = std::string(strategy);
  MOTLEY_ASSIGN_OR_RETURN(const auto setting,
                          planner::Setting::Create(std::move(cluster), std::move(workload), std::move(request), experiment.book));
  for (int kind = 0; kind < setting->costs.num_kinds(); ++kind)
    setting->costs.ScaleSeconds(kind, 0.01 * constants.compute_percent);
  if (cell.published > 0) {
    outcome->published_seconds =
        experiment.in_tflops ? setting->costs.PublishedFlops(cell.batch) / (cell.published * 1e12) : cell.batch / cell.published;
  }
  MOTLEY_ASSIGN_OR_RETURN(const planner::CatalogEntry entry, planner::FindInCatalog(strategy));
  MOTLEY_ASSIGN_OR_RETURN(planner::Plan plan, entry.plan(*setting));
  MOTLEY_ASSIGN_OR_RETURN(const planner::Evaluation evaluation, planner::Price(*setting, std::move(plan)));
  if (!evaluation.does_not_fit.empty()) return absl::ResourceExhaustedError(evaluation.does_not_fit.front());
  outcome->seconds = evaluation.plan.predicted.step_seconds;
  outcome->estimated = evaluation.plan.predicted.estimated;
  outcome->binds = evaluation.plan.predicted.binding_constraint;
  return absl::OkStatus();
}

inline Outcome Run(const Experiment& experiment, std::string_view strategy, const Cell& cell, const Constants& constants) {
  Outcome outcome;
  outcome.status = Simulate(experiment, strategy, cell, constants, &outcome);
  return outcome;
}

}  // namespace motley::bench
