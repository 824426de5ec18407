// A cluster file's text that is well.
#pragma once

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "planner/cluster/cluster_file.h"

namespace motley::planner {

inline Cluster Parsed(const std::string& toml) {
  absl::StatusOr<Cluster> cluster = ParseCluster(toml, "c.toml");
  EXPECT_TRUE(cluster.ok()) << cluster.status() << "\n" << toml;
  return cluster.ok() ? *std::move(cluster) : Cluster();
}

}  // namespace motley::planner
