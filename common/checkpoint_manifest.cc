#include "common/checkpoint_manifest.h"

#include "absl/strings/str_cat.h"
#include "common/clean_text.h"
#include "common/parse_json.h"
#include "common/sha256.h"
#include "common/status_macros.h"

namespace motley {
namespace {

using Json = nlohmann::json;

constexpr int kFormatVersion = 1;
constexpr const char* kTensorNames[kNumStateTensors] = {"parameter", "exp_avg", "exp_avg_sq"};

Json FileToJson(const CheckpointFile& file) {
  Json pieces = Json::array();
  for (const CheckpointPiece& piece : file.pieces) {
    pieces.push_back({{"unit", piece.unit},
                      {"tensor", kTensorNames[static_cast<int>(piece.tensor)]},
                      {"begin", piece.begin},
                      {"end", piece.end},
                      {"offset", piece.file_offset}});
  }
  return {{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.digest}, {"pieces", std::move(pieces)}};
}

// Throws Json::exception on a missing key or a wrong type; the callers turn that into a Status.
CheckpointFile FileFromJson(const Json& json) {
  CheckpointFile file{
      json.at("name").get<std::string>(), json.at("bytes").get<int64_t>(), json.at("sha256").get<std::string>(), {}};
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

absl::Status CheckVersionAndDigest(Json& json, const std::string& path) {
  const int version = json.at("format_version").get<int>();
  if (version != kFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has format version ", version, "; this program reads version ", kFormatVersion));
  }
  const auto digest = json.at("manifest_sha256").get<std::string>();
  json.erase("manifest_sha256");
  if (Sha256Hex(json.dump()) != digest) return absl::DataLossError(absl::StrCat(path, " was altered: its digest does not match"));
  return absl::OkStatus();
}

absl::StatusOr<CheckpointManifest> FromJson(Json json, const std::string& path) {
  MOTLEY_RETURN_IF_ERROR(CheckVersionAndDigest(json, path));
  CheckpointManifest manifest;
  manifest.format_version = kFormatVersion;
  manifest.job = json.at("job").get<std::string>();
  manifest.epoch = json.at("epoch").get<int64_t>();
  manifest.step = json.at("step").get<int64_t>();
  MOTLEY_ASSIGN_OR_RETURN(manifest.model, ParseHfConfig(json.at("model").dump(), path));
  MOTLEY_ASSIGN_OR_RETURN(manifest.dtype, ParseDType(Echo(json.at("dtype").get<std::string>())));
  manifest.seed = json.at("seed").get<int64_t>();
  manifest.data_digest = json.at("data_digest").get<std::string>();
  for (const Json& file : json.at("files")) manifest.files.push_back(FileFromJson(file));
  return manifest;
}

}  // namespace

std::string ManifestToJson(const CheckpointManifest& manifest) {
  Json files = Json::array();
  for (const CheckpointFile& file : manifest.files) files.push_back(FileToJson(file));
  Json json = {{"format_version", kFormatVersion},
               {"job", manifest.job},
               {"epoch", manifest.epoch},
               {"step", manifest.step},
               {"model", Json::parse(ToHfConfig(manifest.model))},
               {"dtype", std::string(DTypeName(manifest.dtype))},
               {"seed", manifest.seed},
               {"data_digest", manifest.data_digest},
               {"files", std::move(files)}};
  // Keys of a json object are sorted, so the compact dump is canonical; the digest is of the dump without itself.
  json["manifest_sha256"] = Sha256Hex(json.dump());
  return json.dump(1) + "\n";
}

absl::StatusOr<CheckpointManifest> ManifestFromJson(const std::string& text, const std::string& path) {
  absl::StatusOr<Json> json = ParseJson(text, path);
  if (!json.ok()) return absl::DataLossError(json.status().message());
  try {
    return FromJson(*std::move(json), path);
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat(path, " is cut off or altered: ", Echo(error.what())));
  }
}

std::string FileEntryToJson(const CheckpointFile& file) { return FileToJson(file).dump(); }

absl::StatusOr<CheckpointFile> FileEntryFromJson(const std::string& json) {
  MOTLEY_ASSIGN_OR_RETURN(const Json parsed, ParseJson(json, "checkpoint file entry"));
  try {
    return FileFromJson(parsed);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not a checkpoint file entry: ", error.what()));
  }
}

}  // namespace motley
