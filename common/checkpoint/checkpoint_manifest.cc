#include "common/checkpoint/checkpoint_manifest.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/job_uid.h"
#include "common/base/names.h"
#include "common/base/parse_json.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/weights/base_model.h"

namespace motley {
namespace {

using Json = nlohmann::json;

constexpr size_t kDigestDigits = 64;  // of SHA-256
// Six values of a piece take 60 bytes at least, however they are written; what stands beside files and pieces is less than this.
constexpr size_t kLeastBytesOfValue = 8, kFewValues = 1000;
constexpr char kDigestKey[] = "manifest_sha256";
constexpr const char* kTensorNames[kNumStateTensors] = {"parameter", "exp_avg", "exp_avg_sq"};

// Formats before kLocalCheckpointFormat have none.
enum class Nodes { kWritten, kLeftOut };

Json FileToJson(const CheckpointFile& file, Nodes nodes) {
  Json pieces = Json::array();
  for (const CheckpointPiece& piece : file.pieces) {
    pieces.push_back({{"unit", piece.unit},
                      {"tensor", kTensorNames[static_cast<int>(piece.tensor)]},
                      {"begin", piece.begin},
                      {"end", piece.end},
                      {"offset", piece.file_offset}});
  }
  Json json = {{"name", file.name}, {"bytes", file.bytes}, {"pieces", std::move(pieces)}};
  if (nodes == Nodes::kWritten && !file.node.empty()) json["node"] = file.node;
  if (file.digest.empty()) {
    json["blocks_sha256"] = absl::StrJoin(file.blocks, "");
  } else {
    json["sha256"] = file.digest;
  }
  return json;
}

// Throws Json::exception on a missing key or a wrong type; the callers turn that into a Status.
CheckpointFile FileFromJson(const Json& json) {
  CheckpointFile file{.name = json.at("name").get<std::string>(), .bytes = json.at("bytes").get<int64_t>()};
  if (json.contains("node")) {
    file.node = json.at("node").get<std::string>();
    const absl::Status named = CheckName("node", file.node);
    if (!named.ok()) throw Json::other_error::create(501, std::string(named.message()), &json);
  }
  if (json.contains("sha256")) {
    file.digest = json.at("sha256").get<std::string>();
    if (file.digest.empty()) throw Json::other_error::create(501, "an empty digest", &json);
  } else {
    const std::string& digests = json.at("blocks_sha256").get_ref<const std::string&>();
    for (size_t at = 0; at < digests.size(); at += kDigestDigits) file.blocks.push_back(digests.substr(at, kDigestDigits));
    const int64_t blocks = file.bytes / kCheckpointBlockBytes + (file.bytes % kCheckpointBlockBytes != 0 ? 1 : 0);
    if (file.bytes < 0 || digests.size() % kDigestDigits != 0 || static_cast<int64_t>(file.blocks.size()) != blocks) {
      throw Json::other_error::create(501, "not one digest for each block", &json);
    }
  }
  for (const Json& entry : json.at("pieces")) {
    CheckpointPiece piece;
    piece.unit = entry.at("unit").get<int>();
    const auto tensor = entry.at("tensor").get<std::string>();
    int index = 0;
    while (index < kNumStateTensors && tensor != kTensorNames[index]) ++index;
    if (index == kNumStateTensors) throw Json::other_error::create(501, "unknown tensor " + Quoted(tensor), &entry);
    piece.tensor = static_cast<StateTensor>(index);
    piece.begin = entry.at("begin").get<int64_t>();
    piece.end = entry.at("end").get<int64_t>();
    piece.file_offset = entry.at("offset").get<int64_t>();
    file.pieces.push_back(piece);
  }
  return file;
}

// The digest first, which every format has in this form: an altered version is damage and not a newer format.
absl::Status CheckDigestAndVersion(Json& json, const std::string& path) {
  const auto digest = json.at(kDigestKey).get<std::string>();
  json.erase(kDigestKey);
  if (Sha256Hex(json.dump()) != digest) return absl::DataLossError(absl::StrCat(path, " was altered: its digest does not match"));
  const int version = json.at("format_version").get<int>();
  if (version >= 1 && version <= kNewestCheckpointFormat) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, " has format version ", version, "; this program reads versions up to ", kNewestCheckpointFormat));
}

absl::StatusOr<Json> ParseManifest(const std::string& text, const std::string& path) {
  return ParseJson(text, path, kFewValues + text.size() / kLeastBytesOfValue);
}

absl::StatusOr<CheckpointManifest> FromJson(Json json, const std::string& path) {
  MOTLEY_RETURN_IF_ERROR(CheckDigestAndVersion(json, path));
  CheckpointManifest manifest;
  manifest.format_version = json.at("format_version").get<int>();
  manifest.job = json.at("job").get<std::string>();
  if (json.contains("job_uid")) {
    manifest.job_uid = JobUid(json.at("job_uid").get<std::string>());
    if (!IsJobUid(manifest.job_uid.value())) throw Json::other_error::create(501, "job_uid is no uid", &json);
  }
  manifest.epoch = json.at("epoch").get<int64_t>();
  manifest.step = json.at("step").get<int64_t>();
  MOTLEY_ASSIGN_OR_RETURN(manifest.model, ParseHfConfig(json.at("model").dump(), path));
  MOTLEY_ASSIGN_OR_RETURN(manifest.dtype, ParseDType(Echo(json.at("dtype").get<std::string>())));
  manifest.seed = json.at("seed").get<int64_t>();
  manifest.data_digest = json.at("data_digest").get<std::string>();
  manifest.skipped_steps = json.value("skipped_steps", int64_t{0});
  manifest.loss_scale = json.value("loss_scale", 0.0);
  manifest.steps_at_loss_scale = json.value("steps_at_loss_scale", int64_t{0});
  manifest.base = json.value("base", std::string());
  if (!manifest.base.empty() && !IsBaseName(manifest.base)) {
    throw Json::other_error::create(501, "base is no name of one", &json);
  }
  for (const Json& file : json.at("files")) manifest.files.push_back(FileFromJson(file));
  for (const CheckpointFile& file : manifest.files) {
    if (file.digest.empty() == (manifest.format_version == 1)) {
      return absl::DataLossError(absl::StrCat(path, ": ", file.name, " has no digest of its format"));
    }
    if (manifest.is_local() && file.node.empty()) {
      return absl::DataLossError(absl::StrCat(path, ": ", file.name, " has no node"));
    }
  }
  return manifest;
}

}  // namespace

std::string ManifestToJson(const CheckpointManifest& manifest) {
  const Nodes nodes = manifest.is_local() ? Nodes::kWritten : Nodes::kLeftOut;
  Json files = Json::array();
  for (const CheckpointFile& file : manifest.files) files.push_back(FileToJson(file, nodes));
  Json json = {{"format_version", manifest.format_version},
               {"job", manifest.job},
               {"epoch", manifest.epoch},
               {"step", manifest.step},
               {"model", Json::parse(ToHfConfig(manifest.model))},
               {"dtype", std::string(DTypeName(manifest.dtype))},
               {"seed", manifest.seed},
               {"data_digest", manifest.data_digest},
               {"files", std::move(files)}};
  if (!manifest.job_uid.empty()) json["job_uid"] = manifest.job_uid.value();
  if (!manifest.base.empty()) json["base"] = manifest.base;
  if (manifest.skipped_steps > 0) json["skipped_steps"] = manifest.skipped_steps;
  if (manifest.loss_scale > 0) {
    json["loss_scale"] = manifest.loss_scale;
    json["steps_at_loss_scale"] = manifest.steps_at_loss_scale;
  }
  // Keys of a json object are sorted, so the compact dump is canonical; the digest is of the dump without itself.
  json[kDigestKey] = Sha256Hex(json.dump());
  return json.dump(1) + "\n";
}

absl::StatusOr<CheckpointManifest> ManifestFromJson(const std::string& text, const std::string& path) {
  absl::StatusOr<Json> json = ParseManifest(text, path);
  if (!json.ok()) return absl::DataLossError(json.status().message());
  try {
    return FromJson(*std::move(json), path);
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat(path, " is cut off or altered: ", Echo(error.what())));
  }
}

std::string ManifestDigest(const std::string& text) {
  const absl::StatusOr<Json> json = ParseManifest(text, kManifestName);
  if (!json.ok() || !json->is_object()) return "";
  const auto digest = json->find(kDigestKey);
  return digest != json->end() && digest->is_string() ? digest->get<std::string>() : "";
}

std::string FileEntryToJson(const CheckpointFile& file) { return FileToJson(file, Nodes::kWritten).dump(); }

absl::StatusOr<CheckpointFile> FileEntryFromJson(const std::string& json) {
  MOTLEY_ASSIGN_OR_RETURN(const Json parsed, ParseJson(json, "checkpoint file entry"));
  try {
    return FileFromJson(parsed);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not a checkpoint file entry: ", error.what()));
  }
}

}  // namespace motley
