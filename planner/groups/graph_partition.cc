#include "planner/groups/graph_partition.h"

#include <metis.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace motley::planner {
namespace {

constexpr double kScale = 1000;
constexpr idx_t kSeed = 1;

// METIS begins with its seed, but draws from the process's one rand().
ABSL_CONST_INIT absl::Mutex metis_mutex(absl::kConstInit);

absl::Status Check(const EdgeWeights& weights, const PartitionQuestion& question) {
  const int n = static_cast<int>(question.vertices.size());
  if (question.parts < 1 || question.parts > n) {
    return absl::InvalidArgumentError(
        absl::StrCat("graph partition: ", question.parts, " parts of ", n, " vertices; ask for 1 to ", n));
  }
  if (!(question.balance >= 1) || !std::isfinite(question.balance)) {
    return absl::InvalidArgumentError(absl::StrCat("graph partition: balance must be at least 1, got ", question.balance));
  }
  for (int v : question.vertices) {
    if (v < 0 || static_cast<size_t>(v) >= weights.size() || static_cast<size_t>(v) >= question.vertex_weights.size()) {
      return absl::InvalidArgumentError(absl::StrCat("graph partition: vertex ", v, " is not in the graph"));
    }
    const double weight = question.vertex_weights[v];
    if (!(weight > 0) || !std::isfinite(weight)) {
      return absl::InvalidArgumentError(
          absl::StrCat("graph partition: the weight of vertex ", v, " must be positive, got ", weight));
    }
  }
  return absl::OkStatus();
}

// Compressed rows of a complete graph, as METIS reads it.
struct Rows {
  std::vector<idx_t> begin, neighbour, edge, vertex;
};

class Bisection {
 public:
  Bisection(const EdgeWeights& weights, const PartitionQuestion& question) : weights_(weights), question_(question) {
    for (int a : question.vertices) {
      heaviest_ = std::max(heaviest_, VertexWeight(a));
      for (int b : question.vertices) {
        if (Edge(a, b) > largest_ && a != b && std::isfinite(Edge(a, b))) largest_ = Edge(a, b);
      }
    }
    const double levels = std::ceil(std::log2(std::max(2, question.parts)));
    balance_ = static_cast<real_t>(std::max(1.001, std::pow(question.balance, 1 / levels)));
  }

  absl::Status Divide(const std::vector<int>& vertices, int parts, Parts* result) const {
    if (parts == 1) {
      result->push_back(vertices);
      return absl::OkStatus();
    }
    const int left_parts = (parts + 1) / 2, right_parts = parts - left_parts;
    absl::StatusOr<std::vector<idx_t>> side = TwoSides(vertices, static_cast<real_t>(left_parts) / static_cast<real_t>(parts));
    if (!side.ok()) return side.status();
    std::vector<int> left, right;
    for (size_t i = 0; i < vertices.size(); ++i) ((*side)[i] == 0 ? left : right).push_back(vertices[i]);
    // Each side needs a vertex for each of its parts.
    const auto fill = [](std::vector<int>* from, std::vector<int>* to, int least) {
      for (; static_cast<int>(to->size()) < least; from->pop_back()) to->push_back(from->back());
      std::sort(to->begin(), to->end());
    };
    fill(&left, &right, right_parts);
    fill(&right, &left, left_parts);
    if (absl::Status status = Divide(left, left_parts, result); !status.ok()) return status;
    return Divide(right, right_parts, result);
  }

 private:
  double Edge(int a, int b) const { return weights_[a][b]; }
  double VertexWeight(int v) const { return question_.vertex_weights[v]; }

  Rows MakeRows(const std::vector<int>& vertices) const {
    const size_t n = vertices.size();
    Rows rows;
    rows.begin.push_back(0);
    rows.neighbour.resize(n * (n - 1));
    rows.edge.resize(n * (n - 1));
    size_t next = 0;
    double last = -1;  // edges of one weight lie side by side
    idx_t scaled = 0;
    for (size_t i = 0; i < n; ++i) {
      rows.vertex.push_back(std::max<idx_t>(1, static_cast<idx_t>(std::lround(VertexWeight(vertices[i]) / heaviest_ * kScale))));
      const std::vector<double>& edges = weights_[vertices[i]];
      for (size_t j = 0; j < n; ++j) {
        if (i == j) continue;
        const double edge = edges[vertices[j]];
        if (edge != last) last = edge, scaled = Scaled(edge);
        rows.neighbour[next] = static_cast<idx_t>(j);
        rows.edge[next++] = scaled;
      }
      rows.begin.push_back(static_cast<idx_t>(next));
    }
    return rows;
  }

  idx_t Scaled(double edge) const {
    const double scaled = largest_ > 0 ? std::min(1.0, edge / largest_) * kScale : 0;
    return std::max<idx_t>(1, static_cast<idx_t>(std::lround(question_.maximize_cut ? kScale - scaled : scaled)));
  }

  // 0 or 1 by vertex. METIS is asked for two parts only: asked for more it writes to standard output where a part runs empty.
  absl::StatusOr<std::vector<idx_t>> TwoSides(const std::vector<int>& vertices, real_t left_part) const {
    Rows rows = MakeRows(vertices);
    std::vector<idx_t> side(vertices.size(), 0);
    idx_t n = static_cast<idx_t>(vertices.size()), constraints = 1, parts = 2, cut = 0;
    idx_t options[METIS_NOPTIONS];
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = kSeed;
    options[METIS_OPTION_NUMBERING] = 0;
    real_t targets[] = {left_part, 1 - left_part};
    real_t balance = balance_;
    absl::MutexLock lock(&metis_mutex);
    const int result = METIS_PartGraphRecursive(&n, &constraints, rows.begin.data(), rows.neighbour.data(), rows.vertex.data(),
                                                nullptr, rows.edge.data(), &parts, targets, &balance, options, &cut, side.data());
    if (result != METIS_OK) return absl::InternalError(absl::StrCat("graph partition: METIS failed with code ", result));
    return side;
  }

  const EdgeWeights& weights_;
  const PartitionQuestion& question_;
  double largest_ = 0, heaviest_ = 0;
  real_t balance_ = 1;
};

}  // namespace

absl::StatusOr<Parts> PartitionGraph(const EdgeWeights& weights, const PartitionQuestion& question) {
  if (absl::Status status = Check(weights, question); !status.ok()) return status;
  std::vector<int> vertices = question.vertices;
  std::sort(vertices.begin(), vertices.end());
  Parts result;
  if (absl::Status status = Bisection(weights, question).Divide(vertices, question.parts, &result); !status.ok()) return status;
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace motley::planner
