#include "planner/answers/preset_fits.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "common/base/in_parallel.h"
#include "common/base/status_macros.h"
#include "common/model/parameters.h"
#include "planner/answers/fits.h"
#include "planner/answers/quick_plan.h"

namespace motley::planner {
namespace {

Workload Of(const ModelPreset& preset, const Workload& asked) {
  Workload workload = asked;
  workload.model_name = std::string(preset.name);
  workload.profile_name = std::string(preset.profile_name);
  workload.model = preset.model;
  workload.causal = preset.causal;
  workload.seq_len = std::min(asked.seq_len, preset.model.max_positions);
  workload.notes.clear();
  return workload;
}

// Of a few strategies; where none of them finds what fits, of auto.
double QuickSeconds(Setting setting, bool runs_here) {
  const auto seconds = [runs_here](const std::optional<QuickPlan>& plan) {
    return !plan ? 0 : runs_here ? plan->runs_here_seconds : plan->step_seconds;
  };
  if (const double quick = seconds(FindQuickPlan(setting, QuickStrategies(setting.request))); quick > 0) return quick;
  return seconds(FindQuickPlan(setting, {setting.request.strategy}));
}

void Find(const Setting& setting, PresetFit* row) {
  const QuickFit quick = FindQuickFit(setting);
  row->fits = quick.why_not;
  row->lacking_bytes = quick.lacking_bytes;
  row->runs_here = quick.runs_here;
  row->host_bytes = row->runs_here.ok() ? 0 : quick.host_bytes;
  if (row->runs_here.ok()) row->step_seconds = QuickSeconds(setting.AsRun(), true);
  if (row->fits.ok() && row->step_seconds == 0) row->step_seconds = QuickSeconds(setting, false);
}

// What people look for first: the largest that they can train.
auto Order(const PresetFit& row) {
  const int group = row.runs_here.ok() ? 0 : row.fits.ok() ? 1 : 2;
  return std::tuple(group, group < 2 ? -row.parameters : row.lacking_bytes, -row.parameters);
}

}  // namespace

absl::StatusOr<std::vector<PresetFit>> FindPresetFits(const Cluster& cluster, const Workload& asked, const PlanRequest& request,
                                                      const LatencyBook* book, const PresetProgress& progress) {
  const std::vector<ModelPreset>& presets = ModelPresets();
  PlanRequest quick = request;
  quick.budget_nodes = std::min(request.budget_nodes, kTryBudget);
  std::vector<std::unique_ptr<Setting>> settings;
  std::vector<PresetFit> rows;
  for (const ModelPreset& preset : presets) {
    const Workload workload = Of(preset, asked);
    MOTLEY_ASSIGN_OR_RETURN(std::unique_ptr<Setting> setting, Setting::Create(cluster, workload, quick, book));
    settings.push_back(std::move(setting));
    PresetFit row;
    row.model = workload.model_name;
    row.parameters = NumParameters(preset.model);
    row.seq_len = workload.seq_len;
    row.tokens = static_cast<double>(workload.global_batch * workload.seq_len);
    rows.push_back(std::move(row));
  }
  absl::Mutex mutex;
  int done = 0;
  InParallel(rows.size(), [&](size_t i) {
    Find(*settings[i], &rows[i]);
    if (!progress) return;
    const absl::MutexLock lock(&mutex);
    progress(++done, static_cast<int>(rows.size()));
  });
  std::stable_sort(rows.begin(), rows.end(), [](const PresetFit& a, const PresetFit& b) { return Order(a) < Order(b); });
  return rows;
}

}  // namespace motley::planner
