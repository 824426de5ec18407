#include "planner/answers/sensitivity.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/answers/more_cards.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/price.h"
#include "planner/search/polish.h"
#include "planner/strategies/catalog.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

constexpr double kMoreMemory = 1.25, kMoreRate = 1.5, kMoreHostRate = 2;
constexpr double kWorthNaming = 0.02;
constexpr double kProfileError = 0.10;
constexpr int kTrials = 6;
constexpr int64_t kNodesPerQuestion = 200'000;  // of search, so that twenty questions stay a matter of seconds

// The step that the setting's strategy reaches on this cluster; 0 when nothing fits there. In a short search auto also climbs
// from the plan that there is, so that it does not pass for a loss.
double BestSeconds(const Setting& setting, Cluster cluster, bool as_file, const Plan& best, const LatencyBook* book) {
  PlanRequest request = setting.request;
  request.exclude.clear();  // they are gone from the cluster already
  if (!as_file) request.budget_nodes = std::min(request.budget_nodes, kNodesPerQuestion);
  const auto changed = Setting::Create(std::move(cluster), setting.workload, std::move(request), book);
  const auto strategy = FindInCatalog(setting.request.strategy);
  if (!changed.ok() || !strategy.ok()) return 0;
  double seconds = 0;
  const auto consider = [&seconds](const absl::StatusOr<Evaluation>& priced) {
    if (!priced.ok() || !priced->does_not_fit.empty()) return;
    const double found = priced->plan.predicted.step_seconds;
    seconds = seconds > 0 ? std::min(seconds, found) : found;
  };
  if (auto plan = strategy->plan(**changed); plan.ok()) consider(Price(**changed, *std::move(plan)));
  if (strategy->name == "auto" && !as_file) {
    SearchBudget budget = BudgetOf((*changed)->request);
    if (auto climbed = Polish(**changed, best, &budget); climbed.ok()) consider(Price(**changed, std::move(climbed->plan)));
  }
  return seconds;
}

struct Question {
  std::string what, resource;
  Cluster cluster;
  bool as_file = false;  // planned as a cluster file that has it would be
};

// What the plan uses: nothing is said of other cards, of links inside a node only where two of its cards work together, and of
// those to the hosts where something waits there.
struct Used {
  std::set<int> kinds;
  bool links_inside = false, links_to_hosts = false;
};

Used UsedBy(const Setting& setting, const Plan& plan) {
  Used used;
  std::set<int> nodes;
  ForEachRank(plan, [&](const RankPlan& rank) {
    const int device = setting.FindDevice(rank.device);
    if (device < 0) return;
    used.kinds.insert(setting.KindOf(device));
    used.links_to_hosts |= rank.offload.any();
    used.links_inside |= !nodes.insert(setting.cluster.devices[device].node).second;
  });
  return used;
}

std::vector<Question> Questions(const Cluster& cluster, const Used& used) {
  std::vector<Question> questions;
  for (const int k : used.kinds) {
    const std::string card = KindText(cluster, k);
    Cluster larger = cluster;
    larger.kinds[k].memory_bytes = static_cast<int64_t>(kMoreMemory * static_cast<double>(larger.kinds[k].memory_bytes));
    questions.push_back({absl::StrCat("25 % more memory on every ", card), absl::StrCat("memory of ", card), std::move(larger)});
    questions.push_back({absl::StrCat("one more ", card), absl::StrCat("compute of ", card), WithMoreCards(cluster, k, 1), true});
  }
  Cluster network = cluster, inside = cluster;
  for (ClusterNode& node : network.nodes) node.nic_bytes_per_second *= kMoreRate;
  for (auto* matrix : {&network.node_bytes_per_second, &network.region_bytes_per_second}) {
    for (std::vector<double>& row : *matrix) {
      for (double& rate : row) rate *= kMoreRate;
    }
  }
  for (ClusterNode& node : inside.nodes) {
    node.device_link_bytes_per_second *= kMoreRate;
    for (DevicePair& pair : node.slow_pairs) pair.bytes_per_second *= kMoreRate;
  }
  if (cluster.nodes.size() > 1)
    questions.push_back({"a network half as fast again", "network between nodes", std::move(network)});
  if (used.links_to_hosts) {
    Cluster hosts = cluster;
    for (ClusterNode& node : hosts.nodes) node.host_link_bytes_per_second *= kMoreHostRate;
    questions.push_back({"links to the hosts' memory twice as fast", "links to hosts", std::move(hosts)});
  }
  if (used.links_inside)
    questions.push_back({"links inside the nodes half as fast again", "links inside nodes", std::move(inside)});
  return questions;
}

void FindRegret(const Setting& setting, double best_seconds, const std::function<void(const std::string&)>& asked,
                Sensitivity* out) {
  const auto strategy = FindInCatalog(setting.request.strategy);
  if (!strategy.ok() || best_seconds <= 0) return;
  double sum = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    asked("wrong profiles");
    std::mt19937_64 random(static_cast<uint64_t>(trial) + 1);
    Setting wrong = setting;
    wrong.request.budget_nodes = std::min(wrong.request.budget_nodes, kNodesPerQuestion);
    for (int kind = 0; kind < wrong.costs.num_kinds(); ++kind) {
      // Not a library distribution: those may differ between standard libraries, and the same files must give the same bytes.
      const double unit = static_cast<double>(random() >> 11) * 0x1.0p-53;
      wrong.costs.ScaleSeconds(kind, 1 + kProfileError * (2 * unit - 1));
    }
    auto plan = strategy->plan(wrong);
    if (!plan.ok()) continue;
    const auto truth = Price(setting, *std::move(plan));
    if (!truth.ok() || !truth->does_not_fit.empty()) continue;
    const double regret = std::max(0.0, truth->plan.predicted.step_seconds / best_seconds - 1);
    sum += regret;
    out->regret_worst = std::max(out->regret_worst, regret);
    ++out->regret_trials;
  }
  if (out->regret_trials > 0) out->regret_mean = sum / out->regret_trials;
}

}  // namespace

Sensitivity FindSensitivity(const Setting& setting, const Plan& best, const LatencyBook* book,
                            const SensitivityProgress& progress) {
  Sensitivity out;
  const double base = best.predicted.step_seconds;
  std::vector<Question> questions = Questions(setting.cluster, UsedBy(setting, best));
  const int total = static_cast<int>(questions.size()) + kTrials;
  int done = 0;
  const auto asked = [&](const std::string& what) {
    if (progress) progress(what, done, total);
    ++done;
  };
  for (Question& question : questions) {
    asked(question.what);
    const double seconds = BestSeconds(setting, std::move(question.cluster), question.as_file, best, book);
    if (seconds <= 0) continue;
    out.relaxations.push_back({std::move(question.what), std::move(question.resource), std::max(0.0, base / seconds - 1)});
  }
  std::stable_sort(out.relaxations.begin(), out.relaxations.end(),
                   [](const Relaxation& a, const Relaxation& b) { return a.gain > b.gain; });
  const bool helps = !out.relaxations.empty() && out.relaxations[0].gain >= kWorthNaming;
  out.helps_most = helps ? out.relaxations[0].what : "nothing alone";
  FindRegret(setting, base, asked, &out);
  return out;
}

std::string ToText(const Sensitivity& sensitivity) {
  std::string text = absl::StrCat("what would help most, found by planning again: ", sensitivity.helps_most, "\n");
  for (const Relaxation& relaxation : sensitivity.relaxations) {
    absl::StrAppend(&text, "  ", relaxation.what, ": ", ChangeText(relaxation.gain, "faster", "slower"), "\n");
  }
  if (sensitivity.regret_trials > 0) {
    absl::StrAppendFormat(
        &text, "planned with latencies wrong by up to 10 %%: steps are %.1f %% longer on average, %.1f %% at worst (%d tries)\n",
        100 * sensitivity.regret_mean, 100 * sensitivity.regret_worst, sensitivity.regret_trials);
  }
  return text;
}

}  // namespace motley::planner
