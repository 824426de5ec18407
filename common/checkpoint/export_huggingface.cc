#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/byte_tokenizer.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/export_folder.h"
#include "common/checkpoint/model_card.h"
#include "common/checkpoint/special_tokens.h"
#include "common/model/parameters.h"
#include "common/weights/base_model.h"
#include "common/weights/safetensors_plan.h"
#include "common/weights/stored_type.h"

namespace motley {
namespace {

constexpr int64_t kCopyElements = 1 << 20;

// `count` elements of the state, as the file has them.
absl::Status WriteElements(const WrittenTensor& tensor, DType state, const char* elements, int64_t count, FileWriter& writer) {
  const int64_t size = SizeOfBytes(tensor.dtype);
  if (tensor.dtype == state) return writer.Write(elements, count * size);
  std::vector<char> converted(static_cast<size_t>(count * size));
  if (ConvertElements(state, elements, count, tensor.dtype, converted.data()) < 0) {
    return writer.Write(converted.data(), count * size);
  }
  return absl::OutOfRangeError(absl::StrCat("tensor ", tensor.name, " has a value beyond what ",
                                            std::string(StoredNameOf(tensor.dtype)),
                                            " holds, the type of the weights that the job began from"));
}

// As it is stored, in parts: a vocabulary's matrix is many times a layer's.
absl::Status CopyTensor(CheckpointReader& reader, const WrittenTensor& tensor, FileWriter& writer) {
  const DType state = reader.manifest().dtype;
  const int64_t elements = tensor.spec.num_elements;
  std::vector<char> block(static_cast<size_t>(std::min(elements, kCopyElements) * SizeOfBytes(state)));
  for (int64_t done = 0; done < elements;) {
    const int64_t count = std::min(elements - done, kCopyElements);
    const int64_t begin = tensor.spec.offset_elements + done;
    MOTLEY_RETURN_IF_ERROR(reader.Read(tensor.unit, begin, begin + count, block.data()));
    MOTLEY_RETURN_IF_ERROR(WriteElements(tensor, state, block.data(), count, writer));
    done += count;
  }
  return absl::OkStatus();
}

// One that HuggingFace has the other way round. Every part of it has elements of all its rows, so all of it is in memory: a
// matrix of one layer.
absl::Status TurnTensor(CheckpointReader& reader, const WrittenTensor& tensor, FileWriter& writer) {
  const DType state = reader.manifest().dtype;
  const auto size = static_cast<size_t>(SizeOfBytes(state));
  const auto rows = static_cast<size_t>(tensor.spec.shape[0]), columns = static_cast<size_t>(tensor.spec.shape[1]);
  std::vector<char> stored(rows * columns * size);
  const int64_t begin = tensor.spec.offset_elements, end = begin + tensor.spec.num_elements;
  MOTLEY_RETURN_IF_ERROR(reader.Read(tensor.unit, begin, end, stored.data()));
  // A few columns at once, so that what a cache has of a row is used whole.
  constexpr size_t kColumns = 64;
  std::vector<char> turned(std::min(columns, kColumns) * rows * size);
  for (size_t first = 0; first < columns; first += kColumns) {
    const size_t count = std::min(columns - first, kColumns);
    for (size_t row = 0; row < rows; ++row) {
      const char* const from = stored.data() + (row * columns + first) * size;
      for (size_t c = 0; c < count; ++c) std::memcpy(turned.data() + (c * rows + row) * size, from + c * size, size);
    }
    MOTLEY_RETURN_IF_ERROR(WriteElements(tensor, state, turned.data(), static_cast<int64_t>(count * rows), writer));
  }
  return absl::OkStatus();
}

absl::Status WriteWeights(CheckpointReader& reader, const WrittenFile& file, const std::string& path) {
  MOTLEY_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
  const std::string header = SafetensorsHeader(file);
  MOTLEY_RETURN_IF_ERROR(writer.Write(header.data(), static_cast<int64_t>(header.size())));
  for (const WrittenTensor& tensor : file.tensors) {
    MOTLEY_RETURN_IF_ERROR(tensor.spec.transposed ? TurnTensor(reader, tensor, writer) : CopyTensor(reader, tensor, writer));
  }
  return writer.Finish();
}

// In the names and types of the base; what it does not name has our names and the state's type.
std::vector<WrittenTensor> TensorsToWrite(const CheckpointManifest& manifest, const BaseModel& base) {
  std::multimap<std::string, const BaseTensor*> named;
  for (const BaseTensor& tensor : base.tensors) named.emplace(tensor.tensor, &tensor);
  const std::vector<UnitSpec> units = ParameterLayout(manifest.model);
  std::vector<WrittenTensor> tensors;
  for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
    for (const TensorSpec& spec : units[unit].tensors) {
      const auto [first, last] = named.equal_range(spec.name);
      if (first == last) tensors.push_back({spec.name, unit, spec, manifest.dtype});
      for (auto at = first; at != last; ++at) tensors.push_back({at->second->name, unit, spec, at->second->dtype});
    }
  }
  return tensors;
}

std::string ExportedName(const SmallFile& file) { return file.name == kCardName ? kBaseCardName : file.name; }

// Of a model that began from its seed; null are the ids that its tokenizer has not, and all of those of bytes.
std::string ConfigOf(const ModelShape& model, const BaseModel& base) {
  nlohmann::json config = nlohmann::json::parse(ToHfConfig(model));
  config.update(SpecialTokenIds(base, model.vocab_size));
  return config.dump(2);
}

// Of the base what it has. Without a tokenizer of its own a model that began from the seed is one of bytes.
absl::Status WriteTexts(const ModelShape& model, const BaseModel& base, const std::string& folder) {
  std::vector<SmallFile> files = base.files;
  const bool own = base.tensors.empty();
  if (own) files.push_back({kModelConfigName, ConfigOf(model, base)});
  if (own && base.Find(kTokenizerName) == nullptr) {
    files.push_back({"generation_config.json", ByteGenerationConfig(model.max_positions)});
    files.push_back({kTokenizerName, ByteTokenizer()});
    files.push_back({"tokenizer_config.json", ByteTokenizerConfig(model.max_positions)});
  }
  for (const SmallFile& file : files) {
    const std::string path = absl::StrCat(folder, "/", ExportedName(file));
    MOTLEY_RETURN_IF_ERROR(MakeFolders(std::filesystem::path(path).parent_path().string()));
    MOTLEY_RETURN_IF_ERROR(WriteFileDurably(path, file.text));
  }
  return absl::OkStatus();
}

absl::StatusOr<BaseModel> BaseOfCheckpoint(const std::string& checkpoint_folder, const CheckpointManifest& manifest) {
  if (manifest.base.empty()) return BaseModel();
  std::filesystem::path folder = std::filesystem::path(checkpoint_folder).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "step-00000040-gen-3/"
  const std::string root = folder.has_parent_path() ? folder.parent_path().string() : ".";
  absl::StatusOr<BaseModel> base = ReadBase(root, manifest.base);
  if (!absl::IsNotFound(base.status()) && !absl::IsDataLoss(base.status())) return base;
  return absl::FailedPreconditionError(
      absl::StrCat("checkpoint ", checkpoint_folder, " goes with the folder ", manifest.base,
                   " beside it, which has the names, types and tokenizer of the model that the job began from: ",
                   std::string(base.status().message()), "; copy that folder from where the job saved"));
}

absl::Status CheckNoOtherBaseCard(const std::string& folder, const BaseModel& base) {
  const std::string path = absl::StrCat(folder, "/", kBaseCardName);
  const std::string* const card = base.Find(kCardName);
  if (card == nullptr || !FileExists(path)) return absl::OkStatus();
  const absl::StatusOr<std::string> there = ReadSmallFile(path, static_cast<int64_t>(card->size()));
  if (there.ok() && *there == *card) return absl::OkStatus();                          // an export that was cut off left it
  if (!there.ok() && !absl::IsInvalidArgument(there.status())) return there.status();  // not longer, but not to be read
  return absl::AlreadyExistsError(absl::StrCat(path, " exists and is another card; choose another folder or remove it"));
}

absl::Status PublishWeights(const std::vector<WrittenFile>& files, ExportFolder& out) {
  if (files.size() == 1) return out.Publish(files[0].name);
  for (const WrittenFile& file : files) MOTLEY_RETURN_IF_ERROR(out.PublishPart(file.name));
  MOTLEY_RETURN_IF_ERROR(WriteFileDurably(out.Partial(kWeightsIndexName), SafetensorsIndex(files)));
  MOTLEY_RETURN_IF_ERROR(SyncFolder(out.path()));
  return out.Publish(kWeightsIndexName);
}

}  // namespace

absl::Status ExportHuggingFace(const std::string& checkpoint_folder, const std::string& out_folder, const CardFacts& facts,
                               int64_t most_shard_bytes, VerifiedWhen verified) {
  MOTLEY_RETURN_IF_ERROR(CheckNoModel(out_folder));  // before a whole checkpoint is read
  MOTLEY_ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(checkpoint_folder));
  if (verified == VerifiedWhen::kFirst) MOTLEY_RETURN_IF_ERROR(VerifyCheckpoint(checkpoint_folder, manifest));
  MOTLEY_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(checkpoint_folder));
  MOTLEY_ASSIGN_OR_RETURN(const BaseModel base, BaseOfCheckpoint(checkpoint_folder, manifest));
  MOTLEY_ASSIGN_OR_RETURN(ExportFolder out, ExportFolder::Claim(out_folder));
  MOTLEY_RETURN_IF_ERROR(CheckNoOtherBaseCard(out_folder, base));
  MOTLEY_RETURN_IF_ERROR(WriteTexts(manifest.model, base, out_folder));
  const std::vector<WrittenFile> files = PlanFiles(TensorsToWrite(manifest, base), most_shard_bytes);
  // Under their names only once all are whole: what is cut off is never taken for a model. Of several the index comes last.
  for (const WrittenFile& file : files) MOTLEY_RETURN_IF_ERROR(WriteWeights(reader, file, out.Partial(file.name)));
  MOTLEY_RETURN_IF_ERROR(PublishWeights(files, out));
  // Last: what was cut off leaves no card, and is exported again.
  MOTLEY_RETURN_IF_ERROR(ReplaceFileDurably(absl::StrCat(out_folder, "/", kCardName), ModelCard(manifest, base, facts)));
  return SyncFolder(out_folder);
}

}  // namespace motley
