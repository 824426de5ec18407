// A checkpoint's manifest and the entries that ranks send each other. The digest of itself is put right first, else no altered
// manifest would ever get behind it.
#include "common/base/parse_json.h"
#include "common/base/sha256.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  const std::string bytes(fuzz::Text(data, size));
  ParseCheckpointFolder("/root", bytes);
  if (const auto entry = FileEntryFromJson(bytes); entry.ok()) {
    fuzz::Require(FileEntryFromJson(FileEntryToJson(*entry)).ok(), "an entry that was written is not read");
  }
  std::string text = bytes;
  if (absl::StatusOr<nlohmann::json> json = ParseJson(bytes, "fuzz"); json.ok() && json->is_object()) {
    json->erase("manifest_sha256");
    (*json)["manifest_sha256"] = Sha256Hex([&] {
      nlohmann::json without = *json;
      without.erase("manifest_sha256");
      return without.dump();
    }());
    text = json->dump();
  }
  const absl::StatusOr<CheckpointManifest> manifest = ManifestFromJson(text, "/fuzz/manifest.json");
  if (!manifest.ok()) return 0;
  fuzz::Require(ManifestFromJson(ManifestToJson(*manifest), "/fuzz/again.json").ok(), "a manifest that was written is not read");
  return 0;
}
