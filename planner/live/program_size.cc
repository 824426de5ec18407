#include "planner/live/program_size.h"

#include <map>

#include "absl/strings/str_format.h"
#include "common/base/count.h"
#include "planner/plan/each_rank.h"

namespace motley::planner {
namespace {

// No shorter than the text, which takes longer to write than a plan to make.
int64_t MostTextBytes(const Program& program) {
  constexpr int64_t kLine = 160, kNumber = 21;
  size_t numbers = 4 * program.microbatches.size() + 2 * program.parameter_buffers.size() + 2 * program.gradient_buffers.size();
  numbers += program.units.size();
  for (const std::vector<int32_t>& group : program.groups) numbers += 1 + group.size();
  for (const Instruction& instruction : program.instructions) numbers += instruction.after.size();
  return kLine * static_cast<int64_t>(5 + program.instructions.size()) + kNumber * static_cast<int64_t>(numbers);
}

int64_t TextBytes(const Program& program) { return static_cast<int64_t>(ToText(program).size()); }

}  // namespace

absl::Status CheckProgramSizes(const Plan& plan, const std::vector<const std::vector<Program>*>& programs, int64_t most_bytes) {
  std::map<NodeName, std::vector<const Program*>> nodes;
  size_t r = 0;
  ForEachRank(plan, [&](const RankPlan& rank) {
    for (const std::vector<Program>* of_all : programs) nodes[NodeOf(rank.device)].push_back(&(*of_all)[r]);
    ++r;
  });
  constexpr double kMiB = 1 << 20;
  for (const auto& [name, of_node] : nodes) {
    const auto sum = [&of_node](int64_t (*bytes_of)(const Program&)) {
      int64_t bytes = 0;
      for (const Program* program : of_node) bytes += bytes_of(*program);
      return bytes;
    };
    if (sum(MostTextBytes) <= most_bytes) continue;
    const int64_t bytes = sum(TextBytes);
    if (bytes <= most_bytes) continue;
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the programs of the %s of node %s are %.1f MiB long; a worker takes %.1f MiB. Larger microbatches, fewer ministages or "
        "a smaller global batch make them shorter",
        Count(of_node.size() / programs.size(), "rank"), name.value(), static_cast<double>(bytes) / kMiB,
        static_cast<double>(most_bytes) / kMiB));
  }
  return absl::OkStatus();
}

}  // namespace motley::planner
