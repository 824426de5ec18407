#include "common/weights/weights_sample.h"

#include <gtest/gtest.h>

#include "common/base/sha256.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/common/weights/weights_fixture.h"

namespace motley {
namespace {

std::string DigestOfSample(const TempFolder& folder) {
  const auto sample = SampleWeights(folder.path(), OpenAnywhere);
  EXPECT_TRUE(sample.ok()) << sample.status();
  return sample.ok() ? sample->digest : "";
}

TEST(WeightsSampleTest, OneFolderHasOneDigestWhateverLiesBesideTheWeights) {
  const TempFolder one, two;
  const std::vector<TestTensor> tensors = TensorsOfTest({TinyLlama()});
  WriteWhole(one, TinyLlama(), tensors), WriteWhole(two, TinyLlama(), tensors);
  one.Write("README.md", "x"), one.Write("tokenizer.json", "{}");
  EXPECT_EQ(DigestOfSample(one), DigestOfSample(two));
  EXPECT_EQ(DigestOfSample(one).size(), 64u);
  EXPECT_EQ(SampleWeights(one.path(), OpenAnywhere)->tokenizer, Sha256Hex("{}"));
  EXPECT_EQ(SampleWeights(two.path(), OpenAnywhere)->tokenizer, "");
}

// Base and Instruct of one model differ in contents alone.
TEST(WeightsSampleTest, OneByteOfAnyTensorsEndsOrOfTheConfigTells) {
  ModelShape model = TinyLlama();
  model.vocab_size = 4096;  // its matrix is larger than what is sampled of it
  const TempFolder base, other;
  std::vector<TestTensor> tensors = TensorsOfTest({model});
  WriteWhole(base, model, tensors);
  const std::string digest = DigestOfSample(base);
  for (TestTensor& tensor : tensors) {
    for (const size_t at : {size_t{0}, tensor.bytes.size() - 1}) {
      tensor.bytes[at] ^= 1;
      WriteWhole(other, model, tensors);
      EXPECT_NE(DigestOfSample(other), digest) << tensor.name;
      tensor.bytes[at] ^= 1;
    }
  }
  ASSERT_GT(tensors[0].bytes.size(), static_cast<size_t>(4 * kSampledBytes));
  tensors[0].bytes[tensors[0].bytes.size() / 2] ^= 1;
  WriteWhole(other, model, tensors);
  EXPECT_EQ(DigestOfSample(other), digest) << "the price of reading a few MB only";
  WriteWhole(other, model, TensorsOfTest({model}));
  other.Write("config.json", ToHfConfig(model) + "\n");
  EXPECT_NE(DigestOfSample(other), digest);
}

TEST(WeightsSampleTest, ShardsAreComparedWithTheirIndex) {
  const TempFolder whole, shards;
  WriteWhole(whole, TinyLlama(), TensorsOfTest({TinyLlama()}));
  WriteShards(shards, TinyLlama(), TensorsOfTest({TinyLlama()}), 2);
  EXPECT_NE(DigestOfSample(whole), DigestOfSample(shards));
}

}  // namespace
}  // namespace motley
