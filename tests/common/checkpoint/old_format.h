// Checkpoints as older builds wrote them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/sha256.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/model/parameters.h"
#include "tests/common/base/temp_folder.h"

namespace motley {

// The tensors of any unit of any family, as formats 1 and 2 had them one after the other.
inline constexpr std::string_view kOldTensors[] = {
    "wte.weight",       "wpe.weight",         "embed_tokens.weight", "ln_1.weight",
    "ln_1.bias",        "attn.c_attn.weight", "attn.c_attn.bias",    "attn.c_proj.weight",
    "attn.c_proj.bias", "ln_2.weight",        "ln_2.bias",           "mlp.c_fc.weight",
    "mlp.c_fc.bias",    "mlp.c_proj.weight",  "mlp.c_proj.bias",     "input_layernorm.weight",
    "q_proj.weight",    "k_proj.weight",      "v_proj.weight",       "q_proj.bias",
    "k_proj.bias",      "v_proj.bias",        "o_proj.weight",       "post_attention_layernorm.weight",
    "gate_proj.weight", "up_proj.weight",     "down_proj.weight",    "ln_f.weight",
    "ln_f.bias",        "model.norm.weight",  "lm_head.weight"};

// For each element of a unit's old array its place now.
inline std::vector<int64_t> PlacesOfOldElements(const UnitSpec& unit) {
  std::vector<int64_t> places;
  for (const std::string_view name : kOldTensors) {
    for (const TensorSpec& tensor : unit.tensors) {
      if (!tensor.name.ends_with(name)) continue;
      std::vector<int64_t> named(static_cast<size_t>(tensor.num_elements));
      for (int64_t i = 0; i < tensor.num_elements; ++i) named[tensor.named_element(i)] = tensor.offset_elements + i;
      places.insert(places.end(), named.begin(), named.end());
    }
  }
  EXPECT_EQ(static_cast<int64_t>(places.size()), unit.num_elements);
  return places;
}

// The same pieces in the same files, with the arrays in the old order. Format 1 has one digest for each file.
inline void ToOldFormat(const std::string& folder, int format) {
  auto reader = CheckpointReader::Open(folder);
  ASSERT_TRUE(reader.ok()) << reader.status();
  CheckpointManifest manifest = reader->manifest();
  ASSERT_EQ(manifest.format_version, kSharedCheckpointFormat);
  const auto size = static_cast<size_t>(SizeOfBytes(manifest.dtype));
  const std::vector<UnitSpec> units = ParameterLayout(manifest.model);
  std::vector<std::string> arrays;  // of each unit three
  for (size_t unit = 0; unit < units.size(); ++unit) {
    const std::vector<int64_t> places = PlacesOfOldElements(units[unit]);
    std::string now(places.size() * size, '\0');
    for (int t = 0; t < kNumStateTensors; ++t) {
      const absl::Status read =
          reader->Read(static_cast<int>(unit), static_cast<StateTensor>(t), 0, units[unit].num_elements, now.data());
      ASSERT_TRUE(read.ok()) << read;
      std::string& old = arrays.emplace_back(now.size(), '\0');
      for (size_t i = 0; i < places.size(); ++i) std::memcpy(&old[i * size], &now[static_cast<size_t>(places[i]) * size], size);
    }
  }
  manifest.format_version = format;
  for (CheckpointFile& file : manifest.files) {
    std::vector<PieceData> pieces;
    for (const CheckpointPiece& piece : file.pieces) {
      const std::string& array = arrays[static_cast<size_t>(piece.unit * kNumStateTensors + static_cast<int>(piece.tensor))];
      const char* const begin = array.data() + static_cast<size_t>(piece.begin) * size;
      pieces.push_back({piece.unit, piece.tensor, piece.begin, piece.end, [begin] { return begin; }});
    }
    auto written = WriteCheckpointFile(folder, file.name, manifest.dtype, pieces);
    ASSERT_TRUE(written.ok()) << written.status();
    file = *std::move(written);
    if (format > 1) continue;
    file.digest = Sha256Hex(TempFolder::Read(folder + "/" + file.name));
    file.blocks.clear();
  }
  std::ofstream(folder + "/manifest.json", std::ios::binary) << ManifestToJson(manifest);
}

}  // namespace motley
