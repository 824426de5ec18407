// Tiny folders of HuggingFace's for tests: every element's value tells its tensor and place, and is exact in every type.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/parameters.h"
#include "common/weights/stored_type.h"
#include "common/weights/weights_folder.h"
#include "nlohmann/json.hpp"
#include "tests/common/base/temp_folder.h"

namespace motley {

struct TestTensor {
  std::string name, type;
  std::vector<int64_t> shape;
  std::string bytes;
};

inline std::string SafetensorsText(const std::vector<TestTensor>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::string data;
  for (const TestTensor& tensor : tensors) {
    const size_t begin = data.size();
    data += tensor.bytes;
    header[tensor.name] = {{"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const auto length = static_cast<uint64_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text + data;  // this machine is little-endian
}

// Of element `i` in HuggingFace's order: small integers, which a bfloat16 holds.
inline float TestValue(const std::string& tensor, int64_t i) {
  int64_t sum = i * 7;
  for (const char c : tensor) sum += c;
  return static_cast<float>(sum % 251 - 125);
}

inline std::string TestBytes(DType dtype, const std::vector<float>& values) {
  std::string bytes(values.size() * static_cast<size_t>(SizeOfBytes(dtype)), '\0');
  ConvertElements(DType::kFloat32, values.data(), static_cast<int64_t>(values.size()), dtype, bytes.data());
  return bytes;
}

struct TestWeights {
  ModelShape model;
  std::function<DType(const std::string&)> dtype = [](const std::string&) { return DType::kBFloat16; };
  bool without_prefix = false;
};

// All tensors of the model, as the files have them.
inline std::vector<TestTensor> TensorsOfTest(const TestWeights& weights) {
  std::vector<TestTensor> tensors;
  for (const UnitSpec& unit : ParameterLayout(weights.model)) {
    for (const TensorSpec& spec : unit.tensors) {
      std::vector<float> values;
      for (int64_t i = 0; i < spec.num_elements; ++i) values.push_back(TestValue(spec.name, i));
      const DType dtype = weights.dtype(spec.name);
      const bool cut = weights.without_prefix && spec.name != "lm_head.weight";
      const std::string name = cut ? spec.name.substr(spec.name.find('.') + 1) : spec.name;
      tensors.push_back({name, std::string(StoredNameOf(dtype)), spec.named_shape(), TestBytes(dtype, values)});
    }
  }
  return tensors;
}

inline void WriteWhole(const TempFolder& folder, const ModelShape& model, const std::vector<TestTensor>& tensors,
                       const std::string& at = "") {
  folder.Write(at + "config.json", ToHfConfig(model));
  folder.Write(at + "model.safetensors", SafetensorsText(tensors));
}

// By turns, as no program would: a unit's tensors lie in all of them.
inline void WriteShards(const TempFolder& folder, const ModelShape& model, const std::vector<TestTensor>& tensors, size_t count) {
  std::vector<std::vector<TestTensor>> shards(count);
  nlohmann::json index;
  for (size_t i = 0; i < tensors.size(); ++i) {
    shards[i % count].push_back(tensors[i]);
    index["weight_map"][tensors[i].name] = absl::StrCat("model-0000", i % count + 1, "-of-0000", count, ".safetensors");
  }
  folder.Write("config.json", ToHfConfig(model));
  for (size_t s = 0; s < count; ++s) {
    folder.Write(absl::StrCat("model-0000", s + 1, "-of-0000", count, ".safetensors"), SafetensorsText(shards[s]));
  }
  folder.Write("model.safetensors.index.json", index.dump());
}

}  // namespace motley
