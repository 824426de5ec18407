#include "planner/live/explain.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/live/cephalo.h"
#include "planner/live/plan_builder.h"
#include "planner/live/pricing.h"
#include "planner/live/strategy.h"
#include "planner/util/in_parallel.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

// Questions are asked once for each kind of device, and not for more kinds than a person reads.
constexpr size_t kMostKinds = 6;
// Simulating alternatives for more devices would take longer than planning.
constexpr size_t kMostSimulatedDevices = 32;
constexpr double kMemoryBindsAbove = 0.02;
constexpr int64_t kMemoryStep = int64_t{1} << 30;

// The first device of each kind, kinds being told apart by model and memory.
std::vector<size_t> FirstOfEachKind(const PlannerInput& input) {
  std::vector<size_t> firsts;
  for (size_t i = 0; i < input.devices.size(); ++i) {
    const bool seen = std::any_of(firsts.begin(), firsts.end(), [&](size_t f) {
      return input.devices[f].model == input.devices[i].model && input.devices[f].memory_bytes == input.devices[i].memory_bytes;
    });
    if (!seen && firsts.size() < kMostKinds) firsts.push_back(i);
  }
  return firsts;
}

Alternative Price(const PlannerInput& input, const std::string& what, const std::string& strategy) {
  Alternative alternative{what, 0, ""};
  const auto price = [&]() -> absl::StatusOr<double> {
    auto found = FindStrategy(strategy);
    if (!found.ok()) return found.status();
    auto cost = CostModel::Create(input);
    if (!cost.ok()) return cost.status();
    auto plan = found->plan(input, *cost);
    if (!plan.ok()) return plan.status();
    auto priced = PriceTraining(input, *std::move(plan));
    if (!priced.ok()) return priced.status();
    return priced->simulation.seconds;
  };
  const auto seconds = price();
  if (seconds.ok()) {
    alternative.step_seconds = *seconds;
  } else {
    alternative.why_not = std::string(seconds.status().message());
  }
  return alternative;
}

// Seconds of the split with more memory on the first device of a kind, with twice its memory, with one more such device.
struct OneKindMore {
  double with_step = 0, with_twice = 0, with_device = 0;
};

double SecondsWithOneMore(const PlannerInput& input, size_t i) {
  if (input.devices.size() == 1) return 0;
  PlannerInput other = input;
  other.devices.push_back(input.devices[i]);
  other.devices.back().id = DeviceId(input.devices[i].id.value() + "+1");
  other.compute.push_back(input.compute[i]);
  other.compute.back().device = other.devices.back().id;
  return SplitSeconds(other).value_or(0);
}

std::string GainText(const WhatIf& what_if) { return absl::StrFormat("%s would give %.1f %%", what_if.what, 100 * what_if.gain); }

void AppendWhatIfs(const std::vector<WhatIf>& what_ifs, std::string* out) {
  for (const WhatIf& what_if : what_ifs) absl::StrAppend(out, "  ", GainText(what_if), "\n");
}

}  // namespace

std::string BusiestLane(const Plan& plan, const std::vector<Program>& programs, const Simulation& simulation) {
  size_t busiest = 0;
  for (size_t r = 1; r < simulation.ranks.size(); ++r) {
    if (simulation.ranks[r].busy_seconds > simulation.ranks[busiest].busy_seconds) busiest = r;
  }
  if (simulation.ranks[busiest].busy_seconds >= simulation.collective_seconds) {
    return absl::StrCat("compute of ", plan.pipelines[0].stages[0].units[busiest].ranks[0].device.value());
  }
  double gather = 0, reduce = 0;
  for (size_t i = 0; i < programs[0].instructions.size(); ++i) {
    const Operation& op = programs[0].instructions[i].op;
    const SimulatedSpan& span = simulation.ranks[0].spans[i];
    if (std::holds_alternative<Gather>(op)) gather += span.end_seconds - span.begin_seconds;
    if (std::holds_alternative<ReduceScatter>(op)) reduce += span.end_seconds - span.begin_seconds;
  }
  return gather >= reduce ? "all-gather" : "reduce-scatter";
}

std::vector<Alternative> FindAlternatives(const PlannerInput& input, const Plan& plan) {
  std::vector<Alternative> alternatives;
  if (input.devices.size() > kMostSimulatedDevices) return alternatives;
  PlannerInput other = input;
  for (const Strategy& strategy : Strategies()) {
    if (strategy.name == plan.strategy) continue;
    const std::string name(strategy.name);
    alternatives.push_back(Price(other, name == "even" ? "even split" : absl::StrCat("strategy ", name), name));
  }
  if (input.config.planner.recompute == "auto") {
    for (const auto& [policy, what] : {std::pair{"none", "no recomputation"}, std::pair{"full", "recompute everywhere"}}) {
      other.config.planner.recompute = policy;
      alternatives.push_back(Price(other, what, plan.strategy));
    }
  }
  if (input.devices.size() < 2) return alternatives;
  for (const size_t first : FirstOfEachKind(input)) {
    std::vector<size_t> rest;
    for (size_t i = 0; i < input.devices.size(); ++i) {
      if (i != first) rest.push_back(i);
    }
    alternatives.push_back(
        Price(Restrict(input, rest), absl::StrCat("without ", input.devices[first].id.value()), plan.strategy));
  }
  return alternatives;
}

Sensitivity FindSensitivity(const PlannerInput& input) {
  Sensitivity sensitivity;
  const std::vector<size_t> firsts = FirstOfEachKind(input);
  const auto with_memory = [&input](size_t i, int64_t bytes) {
    PlannerInput other = input;
    other.devices[i].memory_bytes = bytes;
    return SplitSeconds(other).value_or(0);
  };
  // On devices scaled down, a step that means something there.
  const auto step = [&input](size_t i) { return std::min(kMemoryStep, input.devices[i].memory_bytes / 4); };
  double now = 0;
  std::vector<OneKindMore> answers(firsts.size());  // 0: not asked, or no split
  InParallel(1 + 3 * firsts.size(), [&](size_t question) {
    if (question == 0) {
      now = SplitSeconds(input).value_or(0);
      return;
    }
    const size_t kind = (question - 1) / 3, i = firsts[kind];
    const int64_t bytes = input.devices[i].memory_bytes;
    switch (question % 3) {
      case 1:
        if (bytes > 0) answers[kind].with_step = with_memory(i, bytes + step(i));
        break;
      case 2:
        if (bytes > 0) answers[kind].with_twice = with_memory(i, 2 * bytes);
        break;
      default:
        answers[kind].with_device = SecondsWithOneMore(input, i);
    }
  });
  if (now <= 0) return sensitivity;
  const auto gain = [now](double seconds) { return seconds > 0 ? now / seconds - 1 : 0; };
  double most = kMemoryBindsAbove;
  for (size_t kind = 0; kind < firsts.size(); ++kind) {
    const size_t i = firsts[kind];
    const DeviceDescription& device = input.devices[i];
    if (device.memory_bytes > 0) {
      sensitivity.more_memory.push_back(
          {absl::StrCat(BytesText(step(i)), " more on ", device.id.value()), gain(answers[kind].with_step)});
      if (const double doubled = gain(answers[kind].with_twice); doubled > most) {
        most = doubled;
        sensitivity.memory_bound_device = device.id.value();
      }
    }
    if (input.devices.size() == 1) continue;  // what a second device's collectives would cost is not known
    sensitivity.more_devices.push_back(
        {absl::StrCat("one more device like ", device.id.value(), " (", device.model, ")"), gain(answers[kind].with_device)});
  }
  return sensitivity;
}

std::string ExplanationText(const Plan& plan, const std::vector<Alternative>& alternatives, const Sensitivity& sensitivity) {
  std::string out = ToText(plan);
  if (!alternatives.empty()) out += "alternatives:\n";
  for (const Alternative& a : alternatives) {
    if (a.step_seconds <= 0) {
      absl::StrAppend(&out, "  ", a.what, ": does not work: ", a.why_not, "\n");
      continue;
    }
    absl::StrAppendFormat(&out, "  %s: %s a step (%+.1f %%)\n", a.what, SecondsText(a.step_seconds),
                          100 * (a.step_seconds / plan.predicted.step_seconds - 1));
  }
  if (!sensitivity.more_memory.empty() || !sensitivity.more_devices.empty())
    out += "more hardware (collectives taken as they are):\n";
  AppendWhatIfs(sensitivity.more_memory, &out);
  AppendWhatIfs(sensitivity.more_devices, &out);
  return out;
}

}  // namespace motley::planner
