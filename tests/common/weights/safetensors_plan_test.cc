#include "common/weights/safetensors_plan.h"

#include <gtest/gtest.h>

#include "common/weights/safetensors.h"
#include "nlohmann/json.hpp"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

std::vector<WrittenTensor> TensorsOf(const std::vector<int64_t>& elements) {
  std::vector<WrittenTensor> tensors;
  for (const int64_t count : elements) {
    TensorSpec spec;
    spec.shape = {count};
    spec.num_elements = count;
    tensors.push_back({"t" + std::to_string(tensors.size()), 0, spec, DType::kBFloat16});
  }
  return tensors;
}

TEST(SafetensorsPlanTest, FilesAreFilledInOrderAndNamedAsHubsNameThem) {
  const std::vector<WrittenFile> one = PlanFiles(TensorsOf({5, 5}), 20);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].name, "model.safetensors");
  const std::vector<WrittenFile> files = PlanFiles(TensorsOf({5, 5, 30, 1, 2}), 20);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].tensors.size(), 2u);
  EXPECT_EQ(files[1].tensors.size(), 1u) << "larger than a file may be";
  EXPECT_EQ(files[2].name, "model-00003-of-00003.safetensors");
  const auto index = nlohmann::json::parse(SafetensorsIndex(files));
  EXPECT_EQ(index["metadata"]["total_size"], 86);
  EXPECT_EQ(index["weight_map"]["t2"], "model-00002-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"].size(), 5u);
}

TEST(SafetensorsPlanTest, AHeaderIsReadBack) {
  const WrittenFile file{"model.safetensors", TensorsOf({5, 3})};
  const std::string header = SafetensorsHeader(file);
  EXPECT_EQ(header.size() % 8, 0u);
  const auto tensors = ParseSafetensorsHeader(header.substr(8), static_cast<int64_t>(header.size()) + 16, "m");
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_EQ((*tensors)[1].name, "t1");
  EXPECT_EQ((*tensors)[1].type, "BF16");
}

}  // namespace
}  // namespace motley
