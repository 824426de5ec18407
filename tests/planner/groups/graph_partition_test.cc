#include "planner/groups/graph_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace motley::planner {
namespace {

// Nodes of four devices: 10 inside, 1 between.
EdgeWeights Nodes(size_t devices) {
  EdgeWeights w(devices, std::vector<double>(devices, 1));
  for (size_t a = 0; a < devices; ++a) {
    for (size_t b = 0; b < devices; ++b) {
      if (a / 4 == b / 4) w[a][b] = 10;
    }
  }
  return w;
}

PartitionQuestion Question(size_t devices, int parts) {
  PartitionQuestion question;
  question.vertices.resize(devices);
  std::iota(question.vertices.begin(), question.vertices.end(), 0);
  question.vertex_weights.assign(devices, 1);
  question.parts = parts;
  return question;
}

TEST(GraphPartition, LittleBetweenKeepsNodesTogether) {
  const Parts parts = PartitionGraph(Nodes(8), Question(8, 2)).value();
  EXPECT_EQ(parts, Parts({{0, 1, 2, 3}, {4, 5, 6, 7}}));
}

TEST(GraphPartition, MuchBetweenDividesNodes) {
  PartitionQuestion question = Question(8, 2);
  question.maximize_cut = true;
  const Parts parts = PartitionGraph(Nodes(8), question).value();
  for (const std::vector<int>& part : parts) {
    const auto of_first = std::count_if(part.begin(), part.end(), [](int v) { return v < 4; });
    EXPECT_EQ(of_first, 2);
  }
}

TEST(GraphPartition, VertexWeightsAreBalanced) {
  PartitionQuestion question = Question(8, 2);
  question.vertex_weights = {4, 4, 1, 1, 1, 1, 2, 2};
  const Parts parts = PartitionGraph(EdgeWeights(8, std::vector<double>(8, 1)), question).value();
  double first = 0;
  for (int v : parts[0]) first += question.vertex_weights[v];
  EXPECT_NEAR(first, 8, 1);
}

TEST(GraphPartition, EveryCountOfPartsIsReachedAndQuestionsRepeat) {
  for (int parts = 1; parts <= 12; ++parts) {
    PartitionQuestion question = Question(12, parts);
    for (bool maximize : {false, true}) {
      question.maximize_cut = maximize;
      const Parts first = PartitionGraph(Nodes(12), question).value();
      ASSERT_EQ(first.size(), static_cast<size_t>(parts));
      size_t vertices = 0;
      for (const std::vector<int>& part : first) vertices += part.size();
      EXPECT_EQ(vertices, 12u);
      EXPECT_EQ(PartitionGraph(Nodes(12), question).value(), first);
    }
  }
}

TEST(GraphPartition, RefusesWhatMakesNoSense) {
  EXPECT_EQ(PartitionGraph(Nodes(4), Question(4, 5)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PartitionGraph(Nodes(4), Question(4, 0)).status().code(), absl::StatusCode::kInvalidArgument);
  PartitionQuestion question = Question(4, 2);
  question.balance = 0.5;
  EXPECT_FALSE(PartitionGraph(Nodes(4), question).ok());
  question = Question(4, 2);
  question.vertex_weights[2] = 0;
  EXPECT_FALSE(PartitionGraph(Nodes(4), question).ok());
  question = Question(4, 2);
  question.vertices[1] = 9;
  EXPECT_FALSE(PartitionGraph(Nodes(4), question).ok());
}

}  // namespace
}  // namespace motley::planner
