#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/byte_tokenizer.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/model/parameters.h"
#include "nlohmann/json.hpp"

namespace motley {
namespace {

constexpr int64_t kCopyElements = 1 << 20;

// safetensors: 8-byte little-endian length of the header, the header (JSON, padded with spaces to 8 bytes), then the raw arrays.
std::string SafetensorsHeader(const std::vector<UnitSpec>& units, DType dtype) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  int64_t offset = 0;
  for (const UnitSpec& unit : units) {
    for (const TensorSpec& tensor : unit.tensors) {
      const int64_t end = offset + tensor.num_elements * SizeOfBytes(dtype);
      header[tensor.name] = {
          {"dtype", dtype == DType::kFloat64 ? "F64" : "F32"}, {"shape", tensor.named_shape()}, {"data_offsets", {offset, end}}};
      offset = end;
    }
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (size_t i = 0, rest = text.size(); i < 8; ++i, rest >>= 8) length[i] = static_cast<char>(rest & 0xFF);
  return length + text;
}

// As it is stored, in parts: a vocabulary's matrix is many times a layer's.
absl::Status CopyTensor(CheckpointReader& reader, int unit, const TensorSpec& tensor, FileWriter& writer) {
  const int64_t size = SizeOfBytes(reader.manifest().dtype);
  std::vector<char> block(static_cast<size_t>(std::min(tensor.num_elements, kCopyElements) * size));
  for (int64_t done = 0; done < tensor.num_elements;) {
    const int64_t count = std::min(tensor.num_elements - done, kCopyElements);
    const int64_t begin = tensor.offset_elements + done;
    MOTLEY_RETURN_IF_ERROR(reader.Read(unit, StateTensor::kParameter, begin, begin + count, block.data()));
    MOTLEY_RETURN_IF_ERROR(writer.Write(block.data(), count * size));
    done += count;
  }
  return absl::OkStatus();
}

// One that HuggingFace has the other way round. Every part of it has elements of all its rows, so all of it is in memory: a
// matrix of one layer.
absl::Status TurnTensor(CheckpointReader& reader, int unit, const TensorSpec& tensor, FileWriter& writer) {
  const auto size = static_cast<size_t>(SizeOfBytes(reader.manifest().dtype));
  const auto rows = static_cast<size_t>(tensor.shape[0]), columns = static_cast<size_t>(tensor.shape[1]);
  std::vector<char> stored(rows * columns * size);
  const int64_t begin = tensor.offset_elements, end = begin + tensor.num_elements;
  MOTLEY_RETURN_IF_ERROR(reader.Read(unit, StateTensor::kParameter, begin, end, stored.data()));
  // A few columns at once, so that what a cache has of a row is used whole.
  constexpr size_t kColumns = 64;
  std::vector<char> turned(std::min(columns, kColumns) * rows * size);
  for (size_t first = 0; first < columns; first += kColumns) {
    const size_t count = std::min(columns - first, kColumns);
    for (size_t row = 0; row < rows; ++row) {
      const char* const from = stored.data() + (row * columns + first) * size;
      for (size_t c = 0; c < count; ++c) std::memcpy(turned.data() + (c * rows + row) * size, from + c * size, size);
    }
    MOTLEY_RETURN_IF_ERROR(writer.Write(turned.data(), static_cast<int64_t>(count * rows * size)));
  }
  return absl::OkStatus();
}

absl::Status WriteSafetensors(CheckpointReader& reader, const std::string& path) {
  const std::vector<UnitSpec> units = ParameterLayout(reader.manifest().model);
  MOTLEY_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
  const std::string header = SafetensorsHeader(units, reader.manifest().dtype);
  MOTLEY_RETURN_IF_ERROR(writer.Write(header.data(), static_cast<int64_t>(header.size())));
  for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
    for (const TensorSpec& tensor : units[unit].tensors) {
      MOTLEY_RETURN_IF_ERROR(tensor.transposed ? TurnTensor(reader, unit, tensor, writer)
                                               : CopyTensor(reader, unit, tensor, writer));
    }
  }
  return writer.Finish();
}

absl::Status WriteTexts(const ModelShape& model, const std::string& folder) {
  MOTLEY_RETURN_IF_ERROR(WriteFileDurably(folder + "/config.json", ToHfConfig(model)));
  MOTLEY_RETURN_IF_ERROR(WriteFileDurably(folder + "/generation_config.json", ByteGenerationConfig(model.max_positions)));
  MOTLEY_RETURN_IF_ERROR(WriteFileDurably(folder + "/tokenizer.json", ByteTokenizer()));
  return WriteFileDurably(folder + "/tokenizer_config.json", ByteTokenizerConfig(model.max_positions));
}

}  // namespace

absl::Status ExportHuggingFace(const std::string& checkpoint_folder, const std::string& out_folder) {
  MOTLEY_ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(checkpoint_folder));
  MOTLEY_RETURN_IF_ERROR(VerifyCheckpoint(checkpoint_folder, manifest));
  MOTLEY_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(checkpoint_folder));
  MOTLEY_RETURN_IF_ERROR(MakeFolders(out_folder));
  const std::string weights = absl::StrCat(out_folder, "/model.safetensors");
  struct stat existing;
  if (::stat(weights.c_str(), &existing) == 0) {
    return absl::AlreadyExistsError(absl::StrCat(weights, " exists; choose another folder or remove it"));
  }
  MOTLEY_RETURN_IF_ERROR(WriteTexts(manifest.model, out_folder));
  // Under its name only once it is whole: what is cut off is never taken for a model.
  const std::string partial = absl::StrCat(weights, ".partial");
  MOTLEY_RETURN_IF_ERROR(WriteSafetensors(reader, partial));
  if (::rename(partial.c_str(), weights.c_str()) != 0) {
    const int error = errno;
    ::unlink(partial.c_str());
    return FileError(error, "name the exported model", weights);
  }
  return SyncFolder(out_folder);
}

}  // namespace motley
