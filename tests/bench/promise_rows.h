// What `motley estimate` promises, held against what `motley plan` finds: clusters, models and batches that nobody has seen,
// about as many of which fit as not.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/device/device_table.h"
#include "common/model/parameters.h"
#include "planner/answers/fits.h"
#include "planner/answers/plan_answer.h"
#include "planner/cluster/cluster_file.h"
#include "planner/setting/setting.h"
#include "planner/strategies/catalog.h"
#include "planner/util/lack_of_memory.h"

namespace motley::planner {

struct PromiseRow {
  std::string name;
  std::unique_ptr<Setting> setting;
};

// The same rows for the same seed with any standard library: no distribution of its.
class PromiseDrawer {
 public:
  // `budget_nodes`: of each search; the two questions ask alike.
  explicit PromiseDrawer(uint64_t seed, int64_t budget_nodes) : random_(seed), budget_nodes_(budget_nodes) {}

  PromiseRow Next() {
    std::string toml = absl::StrCat("name = \"drawn\"\n[defaults]\nnic_gbit_per_second = ", 1 + Below(50), "\n");
    if (Below(2) == 0) absl::StrAppend(&toml, "host_memory_gib = ", 16 + 16 * Below(8), "\n");
    double memory = 0;
    std::string cards;
    const size_t nodes = 1 + Below(3);
    for (size_t n = 0; n < nodes; ++n) {
      const GpuSpec& card = GpuTable()[Below(GpuTable().size())];
      const size_t count = 1 + Below(3);
      memory += static_cast<double>(card.memory_bytes) * static_cast<double>(count);
      absl::StrAppend(&toml, "[[node]]\nname = \"n", n, "\"\ngpus = [{card = \"", std::string(card.name), "\", count = ", count,
                      "}]\n");
      absl::StrAppend(&cards, n == 0 ? "" : " + ", count, " x ", std::string(card.name));
    }
    Workload workload = *LoadModel(std::string(Nearest(memory).name));
    workload.dtype = std::vector{DType::kFloat32, DType::kFloat16, DType::kBFloat16}[Below(3)];
    workload.seq_len = std::min<int64_t>(int64_t{256} << Below(5), workload.model.max_positions);
    workload.global_batch = 1 + static_cast<int64_t>(Below(64));
    PromiseRow row;
    PlanRequest request;
    request.runnable = Below(2) == 0;
    request.budget_nodes = budget_nodes_;
    row.name = absl::StrCat(cards, toml.find("host") == std::string::npos ? "" : " with hosts", ", ", workload.model_name,
                            ", batch ", workload.global_batch, ", sequence ", workload.seq_len, ", ",
                            std::string(DTypeName(workload.dtype)), request.runnable ? ", runnable" : "");
    auto setting = Setting::Create(*ParseCluster(toml, "drawn"), std::move(workload), std::move(request), nullptr);
    if (setting.ok()) row.setting = *std::move(setting);
    return row;
  }

 private:
  size_t Below(size_t count) { return static_cast<size_t>(random_() % count); }

  // One of the presets whose state is nearest to a part of the memory between a third and one and a half.
  const ModelPreset& Nearest(double memory) {
    constexpr double kStateBytes = 16;
    const double wanted = memory * (0.35 + 0.05 * static_cast<double>(Below(24)));
    const auto far = [wanted](const ModelPreset& preset) {
      return std::abs(std::log(kStateBytes * static_cast<double>(NumParameters(preset.model)) / wanted));
    };
    const auto& presets = ModelPresets();
    return *std::min_element(presets.begin(), presets.end(),
                             [&](const ModelPreset& a, const ModelPreset& b) { return far(a) < far(b); });
  }

  std::mt19937_64 random_;
  int64_t budget_nodes_;
};

struct Promise {
  bool fits = false, any_batch = false;
  std::vector<std::string> broken;  // sentences
};

// Of everything that the estimate says of a setting, what planning does not find so.
class PromiseCheck {
 public:
  explicit PromiseCheck(const Setting& setting) : setting_(setting) {}

  Promise Run() {
    const absl::StatusOr<FitReport> report = FindFit(setting_, nullptr, /*with_ways=*/false);
    if (!report.ok()) return {false, false, {absl::StrCat("estimate fails: ", report.status().message())}};
    promise_.fits = report->fits;
    promise_.any_batch = report->batch.any;
    const absl::Status plan = Planned(setting_);
    if (plan.ok() != report->fits) Break("fits ", report->fits, ", the plan: ", plan.ok() ? "there is one" : plan.message());
    if (!plan.ok() && LackingBytes(plan).value_or(0) != report->lacking_bytes) {
      Break("lacks ", report->lacking_bytes, ", the plan ", LackingBytes(plan).value_or(0));
    }
    const Setting as_run = setting_.AsRun();
    const absl::Status runs = setting_.request.runnable ? plan : Planned(as_run);
    if (runs.ok() != report->runs_here.ok()) {
      Break("runs here ", report->runs_here.ok(), ", the plan: ", runs.ok() ? "there is one" : runs.message());
    }
    CheckLargest("batch", report->batch, [](Workload* workload, int64_t value) { workload->global_batch = value; });
    CheckLargest("sequence", report->sequence, [](Workload* workload, int64_t value) { workload->seq_len = value; });
    return std::move(promise_);
  }

 private:
  static absl::Status Planned(const Setting& setting) {
    return PlanAndEvaluate(setting, *FindInCatalog(setting.request.strategy)).status();
  }

  template <typename... Parts>
  void Break(const Parts&... parts) {
    promise_.broken.push_back(absl::StrCat(parts...));
  }

  template <typename Change>
  void CheckLargest(const std::string& what, const Largest& largest, Change change) {
    if (largest.value == 0) return;
    const auto planned = [&](int64_t value) {
      Workload workload = setting_.workload;
      change(&workload, value);
      const auto changed = Setting::Create(setting_.cluster, workload, setting_.request, nullptr);
      return changed.ok() ? Planned(**changed) : changed.status();
    };
    // Where any batch fits, one that is no part of the search: programs of the limit would take minutes.
    constexpr int64_t kSomeBatch = 130;
    const int64_t value = largest.any ? kSomeBatch : largest.value;
    if (const absl::Status status = planned(value); !status.ok()) Break(what, " ", value, ": ", status.message());
    if (largest.any || largest.at_least) return;
    const int64_t more = static_cast<int64_t>(std::ceil(1.1 * static_cast<double>(largest.value)));
    if (more > largest.value && planned(more).ok()) Break(what, " ", largest.value, ": ", more, " has a plan too");
  }

  const Setting& setting_;
  Promise promise_;
};

}  // namespace motley::planner
