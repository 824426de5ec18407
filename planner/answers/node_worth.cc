#include "planner/answers/node_worth.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "common/base/in_parallel.h"
#include "planner/answers/plan_answer.h"
#include "planner/answers/runs_here.h"
#include "planner/cluster/alike_nodes.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

// Runs of nodes that are alike: leaving out any one of a run leaves the same cluster, in the same order.
std::vector<std::vector<int>> RunsOfAlike(const Cluster& cluster) {
  std::vector<std::vector<int>> runs;
  for (int n = 0; n < static_cast<int>(cluster.nodes.size()); ++n) {
    if (runs.empty() || !AreAlike(cluster, cluster.nodes[runs.back().front()], cluster.nodes[n])) runs.emplace_back();
    runs.back().push_back(n);
  }
  return runs;
}

constexpr double kWorthHalving = 1.01;  // times as many tokens a second

class WorthFinder {
 public:
  WorthFinder(const Setting& setting, const LatencyBook* book, const WorthProgress& progress)
      : setting_(setting), book_(book), progress_(progress), runs_(RunsOfAlike(setting.cluster)) {}

  Worth Find(const Plan& best) {
    const bool several = setting_.cluster.nodes.size() > 1;
    const bool asks_runnable = !setting_.request.runnable && !FindRunsHere(setting_, best).status.ok();
    const bool asks_half = setting_.workload.global_batch > 1;
    total_ = (several ? 2 * static_cast<int>(runs_.size()) : 0) + (asks_runnable ? 1 : 0) + (asks_half ? 1 : 0);
    std::vector<std::function<void()>> questions;
    if (asks_half) questions.push_back([this, &best] { Half(best); });
    if (asks_runnable) questions.push_back([this] { Runnable(); });
    if (several) {
      questions.push_back([this] { Machine(); });
      out_.without.resize(runs_.size());
      for (size_t i = 0; i < runs_.size(); ++i) questions.push_back([this, i] { Without(runs_[i], &out_.without[i]); });
    }
    InParallel(questions.size(), [&](size_t i) { questions[i](); });
    return std::move(out_);
  }

 private:
  const NodeName& NameOf(int node) const { return setting_.cluster.nodes[node].name; }

  void Asked(const std::string& question) {
    const absl::MutexLock lock(&mutex_);
    if (progress_) progress_(question, asked_, total_);
    ++asked_;
  }

  absl::StatusOr<std::unique_ptr<Setting>> Leaving(const std::vector<NodeName>& out) const {
    PlanRequest request = setting_.request;
    request.exclude.clear();  // they are gone from the cluster already
    for (const NodeName& name : out) request.exclude.push_back(name.value());
    return Setting::Create(setting_.cluster, setting_.workload, std::move(request), book_);
  }

  static absl::StatusOr<Plan> Planned(const Setting& setting) {
    const absl::StatusOr<CatalogEntry> strategy = FindInCatalog(setting.request.strategy);
    if (!strategy.ok()) return strategy.status();
    absl::StatusOr<Evaluation> evaluation = PlanAndEvaluate(setting, *strategy);
    if (!evaluation.ok()) return evaluation.status();
    return std::move(evaluation->plan);
  }

  void Runnable() {
    Asked("what runs here");
    absl::StatusOr<Plan> plan = Planned(setting_.AsRun());
    out_.not_runnable = plan.status();
    if (plan.ok()) out_.runnable = *std::move(plan);
  }

  void Half(const Plan& best) {
    Asked("half the batch");
    PlanRequest request = setting_.request;
    request.exclude.clear();
    Workload workload = setting_.workload;
    workload.global_batch /= 2;
    const double whole = static_cast<double>(setting_.workload.global_batch) / best.predicted.step_seconds;
    const auto changed = Setting::Create(setting_.cluster, workload, std::move(request), book_);
    if (!changed.ok()) return;
    const absl::StatusOr<Plan> plan = Planned(**changed);
    if (!plan.ok()) return;
    const double seconds = plan->predicted.step_seconds;
    if (static_cast<double>(workload.global_batch) / seconds < kWorthHalving * whole) return;
    out_.half = HalfBatch{workload.global_batch, seconds};
  }

  void Without(const std::vector<int>& run, NodeWorth* worth) {
    for (const int node : run) worth->alike.push_back(NameOf(node));
    Asked(absl::StrCat("without ", worth->alike.front().value()));
    const auto rest = Leaving({worth->alike.front()});
    const absl::StatusOr<Plan> plan = rest.ok() ? Planned(**rest) : rest.status();
    worth->status = plan.status();
    if (plan.ok()) worth->step_seconds = plan->predicted.step_seconds;
  }

  // Of each run the first node, the one with the least bound first.
  void Machine() {
    struct Alone {
      double bound = 0;
      int node = 0;
      std::unique_ptr<Setting> setting;
    };
    std::vector<Alone> nodes;
    for (const std::vector<int>& run : runs_) {
      std::vector<NodeName> others;
      for (const ClusterNode& node : setting_.cluster.nodes) {
        if (node.name != NameOf(run.front())) others.push_back(node.name);
      }
      auto alone = Leaving(others);
      if (!alone.ok()) {
        if (out_.no_machine.ok()) out_.no_machine = alone.status();
        continue;
      }
      const double bound = FindLowerBound(**alone).seconds;
      nodes.push_back({bound, run.front(), *std::move(alone)});
    }
    std::stable_sort(nodes.begin(), nodes.end(), [](const Alone& a, const Alone& b) { return a.bound < b.bound; });
    for (const Alone& alone : nodes) {
      if (out_.machine && alone.bound >= out_.machine->step_seconds) break;
      Asked(absl::StrCat(NameOf(alone.node).value(), " alone"));
      const absl::StatusOr<Plan> plan = Planned(*alone.setting);
      if (!plan.ok()) {
        if (out_.no_machine.ok()) out_.no_machine = plan.status();
        continue;
      }
      const double seconds = plan->predicted.step_seconds;
      if (!out_.machine || seconds < out_.machine->step_seconds) out_.machine = BestMachine{NameOf(alone.node), seconds};
    }
    if (out_.machine) out_.no_machine = absl::OkStatus();
  }

  const Setting& setting_;
  const LatencyBook* const book_;
  const WorthProgress& progress_;
  const std::vector<std::vector<int>> runs_;
  absl::Mutex mutex_;
  int asked_ = 0, total_ = 0;
  Worth out_;  // each question writes what is its own
};

constexpr size_t kMostNames = 4;

std::string NamesText(const std::vector<NodeName>& names) {
  const auto value = [](std::string* out, const NodeName& name) { absl::StrAppend(out, name.value()); };
  if (names.size() == 1) return names.front().value();
  const bool many = names.size() > kMostNames;
  if (!many) return absl::StrCat("any one of ", absl::StrJoin(names, ", ", value));
  return absl::StrCat("any one of ", names.front().value(), " to ", names.back().value(), " (", names.size(), " alike)");
}

std::string FirstLine(const absl::Status& status) {
  const std::string message(status.message());
  return message.substr(0, message.find('\n'));
}

std::string RateText(const Plan& best, double step_seconds) {
  const double rate = best.predicted.tokens_per_second * best.predicted.step_seconds / step_seconds;
  return rate >= 10'000 ? absl::StrFormat("%.1fk tokens/s", rate / 1000) : absl::StrFormat("%.0f tokens/s", rate);
}

std::string LossText(const Plan& best, double step_seconds) {
  return ChangeText(best.predicted.step_seconds / step_seconds - 1, "more: the search found a faster plan there", "fewer");
}

}  // namespace

Worth FindWorth(const Setting& setting, const Plan& best, const LatencyBook* book, const WorthProgress& progress) {
  return WorthFinder(setting, book, progress).Find(best);
}

std::string ToText(const Worth& worth, const Plan& best) {
  std::string text;
  if (worth.runnable) {
    const double seconds = worth.runnable->predicted.step_seconds;
    absl::StrAppend(&text, "  the best plan that runs here: ", SecondsText(seconds), " a step, ", RateText(best, seconds), ", ",
                    ChangeText(seconds / best.predicted.step_seconds - 1, "slower", "faster"), " (--runnable shows it)\n");
  } else if (!worth.not_runnable.ok()) {
    absl::StrAppend(&text, "  no plan runs here: ", FirstLine(worth.not_runnable), "\n");
  }
  if (worth.half) {
    const double samples = static_cast<double>(worth.half->global_batch) / static_cast<double>(best.global_batch);
    const double like_whole = worth.half->step_seconds / samples;  // seconds that as many samples take
    absl::StrAppendFormat(&text, "  half the batch, %d: %s a step, %s, %.1f %% more\n", worth.half->global_batch,
                          SecondsText(worth.half->step_seconds), RateText(best, like_whole),
                          100 * (best.predicted.step_seconds / like_whole - 1));
  }
  for (const NodeWorth& node : worth.without) {
    absl::StrAppend(&text, "  without ", NamesText(node.alike), ": ",
                    node.step_seconds > 0
                        ? absl::StrCat(RateText(best, node.step_seconds), ", ", LossText(best, node.step_seconds))
                        : absl::StrCat("no plan: ", FirstLine(node.status)),
                    "\n");
  }
  if (worth.machine) {
    absl::StrAppendFormat(&text, "  best single machine: %s, %s; all together are %.2f times as fast\n",
                          worth.machine->node.value(), RateText(best, worth.machine->step_seconds),
                          worth.machine->step_seconds / best.predicted.step_seconds);
  } else if (!worth.no_machine.ok()) {
    absl::StrAppend(&text, "  no machine alone holds it: ", FirstLine(worth.no_machine), "\n");
  }
  return text.empty() ? text : absl::StrCat("is it worth it, by planning again:\n", text);
}

}  // namespace motley::planner
