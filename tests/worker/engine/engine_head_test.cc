// Where a step's loss comes from: the head's backward. Whole runs.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "tests/worker/engine/engine_fixture.h"
#include "worker/engine/checkpointer.h"

namespace motley::engine {
namespace {

// As programs once said it, and still may: the head keeps its boundary and runs again before its backward.
Program WithHeadRecomputed(const Program& program) {
  Program changed = program;
  changed.instructions.clear();
  std::vector<int32_t> places;  // of the program's instructions
  for (const Instruction& instruction : program.instructions) {
    std::vector<int32_t> after;
    for (const int32_t before : instruction.after) after.push_back(places[static_cast<size_t>(before)]);
    Operation op = instruction.op;
    if (auto* forward = std::get_if<Forward>(&op); forward != nullptr && forward->unit == program.num_units - 1) {
      forward->keep = Keep::kBoundary;
    }
    if (const auto* back = std::get_if<Backward>(&op); back != nullptr && back->unit == program.num_units - 1) {
      changed.instructions.push_back(
          {Recompute{
               .unit = back->unit, .microbatch = back->microbatch, .buffer = back->buffer, .tied_buffer = back->tied_buffer},
           after});
    }
    places.push_back(static_cast<int32_t>(changed.instructions.size()));
    changed.instructions.push_back({op, after});
  }
  return changed;
}

TEST_F(EngineTest, AHeadThatAProgramRecomputesDoesNothingMore) {
  for (const ModelShape& model : {Gpt2(), Llama()}) {
    std::vector<RankAssignment> plain = Assign(model, {{{3, 1}, 0.5}, {{4}, 0.5}}), again = plain;
    for (RankAssignment& rank : again) rank.program = WithHeadRecomputed(rank.program);
    ASSERT_NE(again[0].program.instructions.size(), plain[0].program.instructions.size());
    const Outcome one = TrainOk(plain), other = TrainOk(again);
    ExpectSameCurve(other.steps[0], one.steps[0], 0);
  }
}

// The layers are finite, and their outputs and the weights; one word's logits are too large for the type.
TEST_F(EngineTest, ALossThatIsNotFiniteIsTheForwardOfTheHead) {
  config_.training.steps = 2;
  config_.training.dtype = "float32";
  config_.checkpoint.interval = 1;
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  const std::string trained = TrainOk(Assign(Llama(), {{{8}, 1.0}})).checkpoints.at(1), weights = (folder_ / "model").string();
  ASSERT_TRUE(ExportHuggingFace(trained, weights).ok());
  std::fstream file(weights + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  uint64_t header_bytes = 0;
  file.read(reinterpret_cast<char*>(&header_bytes), sizeof header_bytes);
  std::string header(header_bytes, ' ');
  file.read(header.data(), static_cast<std::streamsize>(header_bytes));
  const auto at = nlohmann::json::parse(header)["lm_head.weight"]["data_offsets"][0].get<uint64_t>();
  file.seekp(static_cast<std::streamoff>(sizeof header_bytes + header_bytes + at));
  const std::vector<float> row(static_cast<size_t>(Llama().hidden_size), 3e38F);
  file.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size() * sizeof(float)));
  file.close();
  config_.checkpoint.initial = weights;
  config_.checkpoint.folder = (folder_ / "second").string();
  std::vector<RankAssignment> ranks = Assign(Llama(), {{{4}, 0.5}, {{4}, 0.5}});
  for (RankAssignment& rank : ranks) rank.resume_from = weights;
  for (const auto& end : Train(ranks).ends) {
    EXPECT_EQ(end.status().code(), absl::StatusCode::kAborted) << end.status();
    EXPECT_NE(end.status().message().find("the forward of the head"), std::string::npos) << end.status();
  }
}

}  // namespace
}  // namespace motley::engine
