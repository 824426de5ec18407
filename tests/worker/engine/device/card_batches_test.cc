// Batches on a real card: copied behind other work, while the next ones are made.
#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "common/data/data_files.h"
#include "tests/common/base/temp_folder.h"
#include "tests/worker/engine/device/card.h"
#include "worker/engine/batch_loader.h"

namespace motley::engine {
namespace {

constexpr int64_t kSeqLen = 1024, kSteps = 30;

using CardBatchesTest = CardTest;

TEST_F(CardBatchesTest, EachStepFindsItsBatchBehindOtherWork) {
  TempFolder folder;
  std::string text;
  for (int i = 0; i < 300'000; ++i) text.push_back(static_cast<char>('!' + i * 7 % 90));
  const std::string path = folder.Write("text.txt", text);
  const auto data = Dataset::Read(*OpenData(path), path, kSeqLen, 0.1);
  ASSERT_TRUE(data.ok()) << data.status();
  Program program;
  program.num_units = 2;
  program.units = {0, 1};
  program.microbatches = {{.samples = 32, .first = 0}, {.samples = 96, .first = 32}};
  const auto samples = [](int64_t step, const Microbatch& microbatch) {
    std::vector<int64_t> of_step;
    for (int64_t i = 0; i < microbatch.samples; ++i) of_step.push_back((step * 17 + microbatch.first + i) % 200);
    return of_step;
  };
  const auto loader = BatchLoader::Make(*data, program, kSeqLen, /*global_batch=*/128, card(), samples);
  ASSERT_TRUE(loader.ok()) << loader.status();

  DeviceStream& compute = *card().StreamOf(Lane::kCompute);
  at::Tensor busy = at::zeros({1 << 24}, at::TensorOptions().device(card().tensors()));
  std::vector<Batch> seen(kSteps);
  for (int64_t step = 0; step < kSteps; ++step) {
    ASSERT_EQ(compute.Launch([&] {
      for (int i = 0; i < 50; ++i) busy.add_(1);
      return absl::OkStatus();
    }),
              absl::OkStatus());
    const absl::StatusOr<Batch> batch = (*loader)->Load(step);
    ASSERT_TRUE(batch.ok()) << batch.status();
    ASSERT_EQ(compute.Launch([&] {
      for (const at::Tensor& tokens : batch->tokens) seen[step].tokens.push_back(tokens.clone());
      for (const at::Tensor& targets : batch->targets) seen[step].targets.push_back(targets.clone());
      return absl::OkStatus();
    }),
              absl::OkStatus());
  }
  card().Synchronize();
  for (int64_t step = 0; step < kSteps; ++step) {
    const absl::StatusOr<Batch> expected = MakeBatch(*data, Split::kTrain, program, kSeqLen, at::kCPU,
                                                     [&](const Microbatch& microbatch) { return samples(step, microbatch); });
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (size_t m = 0; m < expected->tokens.size(); ++m) {
      EXPECT_TRUE(at::equal(seen[step].tokens[m].cpu(), expected->tokens[m])) << "step " << step;
      EXPECT_TRUE(at::equal(seen[step].targets[m].cpu(), expected->targets[m])) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace motley::engine
