#include "common/weights/safetensors_plan.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/weights/stored_type.h"
#include "common/weights/weights_folder.h"
#include "nlohmann/json.hpp"

namespace motley {

std::vector<WrittenFile> PlanFiles(std::vector<WrittenTensor> tensors, int64_t most_bytes) {
  std::vector<WrittenFile> files(1);
  int64_t bytes = 0;
  for (WrittenTensor& tensor : tensors) {
    if (!files.back().tensors.empty() && bytes + tensor.bytes() > most_bytes) {
      files.emplace_back();
      bytes = 0;
    }
    bytes += tensor.bytes();
    files.back().tensors.push_back(std::move(tensor));
  }
  for (size_t i = 0; i < files.size(); ++i) {
    files[i].name = files.size() == 1 ? kWeightsName : absl::StrFormat("model-%05d-of-%05d.safetensors", i + 1, files.size());
  }
  return files;
}

std::string SafetensorsHeader(const WrittenFile& file) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  int64_t offset = 0;
  for (const WrittenTensor& tensor : file.tensors) {
    const int64_t end = offset + tensor.bytes();
    header[tensor.name] = {{"dtype", std::string(StoredNameOf(tensor.dtype))},
                           {"shape", tensor.spec.named_shape()},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (size_t i = 0, rest = text.size(); i < 8; ++i, rest >>= 8) length[i] = static_cast<char>(rest & 0xFF);
  return length + text;
}

std::string SafetensorsIndex(const std::vector<WrittenFile>& files) {
  nlohmann::json index = {{"weight_map", nlohmann::json::object()}};
  int64_t total = 0;
  for (const WrittenFile& file : files) {
    for (const WrittenTensor& tensor : file.tensors) {
      index["weight_map"][tensor.name] = file.name;
      total += tensor.bytes();
    }
  }
  index["metadata"] = {{"total_size", total}};
  return index.dump(2) + "\n";
}

}  // namespace motley
