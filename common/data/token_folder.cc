#include "common/data/token_folder.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/parse_json.h"
#include "common/base/status_macros.h"

namespace motley {
namespace {

using Json = nlohmann::json;

constexpr char kFormat[] = "motley-tokens";
constexpr int64_t kFolderVersion = 1;
constexpr int64_t kMostTokens = int64_t{1} << 48;  // so that no product with a number's bytes overflows
constexpr int64_t kLongestRow = int64_t{1} << 20;  // as training.seq_len
constexpr size_t kDigits = 64;
constexpr size_t kFewValues = 1000;  // beside the digests of parts

bool IsSha256(const std::string& text) {
  return text.size() == kDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Takes keys of one object; the first that is wrong is the error.
class Keys {
 public:
  Keys(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  int64_t Number(const char* key, int64_t least, int64_t most) {
    const Json* value = Find(key);
    const bool number = value != nullptr && value->is_number_integer();
    const bool large = number && value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(most);
    if (number && !large && value->get<int64_t>() >= least && value->get<int64_t>() <= most) return value->get<int64_t>();
    Wrong(key, absl::StrCat("a whole number from ", least, " to ", most));
    return least;
  }
  std::string Text(const char* key) {
    const Json* value = Find(key);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
    Wrong(key, "a text");
    return "";
  }
  void Wrong(const char* key, const std::string& wanted) {
    if (!status_.ok()) return;
    const Json* value = Find(key);
    status_ = absl::InvalidArgumentError(
        absl::StrCat(where_, ": \"", key, "\" must be ", wanted,
                     value == nullptr ? ", and is not there" : absl::StrCat(", got ", EchoJson(*value)),
                     "; copy the folder again, or prepare it anew"));
  }
  const Json* Find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  const absl::Status& status() const { return status_; }

 private:
  const Json& json_;
  const std::string where_;
  absl::Status status_;
};

absl::StatusOr<PartedFile> ParseFile(const Json& files, const char* name, int64_t bytes, const std::string& where) {
  const auto found = files.find(name);
  const std::string file_where = absl::StrCat(where, ": \"files\": \"", name, "\"");
  if (found == files.end() || !found->is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(file_where, " is not there; prepare the folder anew"));
  }
  PartedFile file;
  Keys keys(*found, file_where);
  file.bytes = keys.Number("bytes", 0, INT64_MAX);
  MOTLEY_RETURN_IF_ERROR(keys.status());
  if (file.bytes != bytes) {
    return absl::InvalidArgumentError(absl::StrCat(file_where, " has ", file.bytes, " bytes, where the folder's counts make ",
                                                   bytes, "; prepare the folder anew"));
  }
  const Json* parts = keys.Find("parts");
  const int64_t wanted = bytes / kPartBytes + (bytes % kPartBytes != 0);
  bool good = parts != nullptr && parts->is_array() && static_cast<int64_t>(parts->size()) == wanted;
  for (int64_t i = 0; good && i < wanted; ++i) {
    const Json& part = (*parts)[static_cast<size_t>(i)];
    good = part.is_string() && IsSha256(part.get<std::string>());
    if (good) file.parts.push_back(part.get<std::string>());
  }
  if (good) return file;
  return absl::InvalidArgumentError(absl::StrCat(file_where, ": \"parts\" must be a list of ", wanted,
                                                 " SHA-256 digests, one for each 64 MiB; prepare the folder anew"));
}

absl::Status ParseKind(Keys& keys, TokenFolder& folder) {
  const std::string format = keys.Text("format");
  if (keys.status().ok() && format != kFormat) keys.Wrong("format", absl::StrCat("\"", kFormat, "\""));
  const int64_t version = keys.Number("version", 1, INT32_MAX);
  MOTLEY_RETURN_IF_ERROR(keys.status());
  if (version != kFolderVersion) keys.Wrong("version", absl::StrCat(kFolderVersion, " for this Motley"));
  const std::string kind = keys.Text("kind"), dtype = keys.Text("dtype");
  if (kind != "stream" && kind != "rows") keys.Wrong("kind", "\"stream\" or \"rows\"");
  if (dtype != "uint16" && dtype != "int32") keys.Wrong("dtype", "\"uint16\" or \"int32\"");
  folder.kind = kind == "rows" ? DataKind::kRows : DataKind::kStream;
  folder.type = dtype == "uint16" ? TokenType::kUint16 : TokenType::kInt32;
  return keys.status();
}

absl::Status ParseCounts(Keys& keys, TokenFolder& folder) {
  folder.vocabulary = keys.Number("vocab_size", 1, kAnyVocabulary);
  folder.greatest_token = keys.Number("greatest_token", 0, folder.vocabulary - 1);
  folder.tokens = keys.Number("tokens", 1, kMostTokens);
  folder.documents = keys.Number("documents", 1, kMostTokens);
  folder.trained_tokens = keys.Number("trained_tokens", 0, folder.tokens - 1);
  folder.source_bytes = keys.Number("source_bytes", 0, kMostTokens);
  if (folder.kind == DataKind::kRows) {
    folder.seq_len = keys.Number("seq_len", 1, kLongestRow);
    folder.rows = keys.Number("rows", 1, folder.documents);
    // No row is longer than its seq_len. Divided, so that nothing overflows.
    if (keys.status().ok() && (folder.tokens - 1) / folder.seq_len >= folder.rows) {
      keys.Wrong("tokens", absl::StrCat("at most those of ", folder.rows, " rows of ", folder.seq_len));
    }
  }
  folder.tokenizer = keys.Text("tokenizer");
  if (keys.status().ok() && !IsSha256(folder.tokenizer)) keys.Wrong("tokenizer", "the SHA-256 of tokenizer.json");
  return keys.status();
}

}  // namespace

bool IsMeantAsTokenFolder(std::string_view text) {
  return absl::StrContains(absl::string_view(text.data(), std::min<size_t>(text.size(), kLargestTokensJson)), kFormat);
}

absl::StatusOr<TokenFolder> ParseTokenFolder(std::string_view text, const std::string& source) {
  const std::string where = absl::StrCat("data file ", source);
  MOTLEY_ASSIGN_OR_RETURN(const Json json, ParseJson(text, where, kFewValues + text.size() / kDigits));
  if (!json.is_object()) return absl::InvalidArgumentError(absl::StrCat(where, " is no JSON object; prepare the folder anew"));
  TokenFolder folder;
  Keys keys(json, where);
  MOTLEY_RETURN_IF_ERROR(ParseKind(keys, folder));
  MOTLEY_RETURN_IF_ERROR(ParseCounts(keys, folder));
  const Json* files = keys.Find("files");
  if (files == nullptr || !files->is_object()) keys.Wrong("files", "an object of the folder's files");
  MOTLEY_RETURN_IF_ERROR(keys.status());
  const int64_t sequences = folder.documents, groups = folder.kind == DataKind::kRows ? folder.rows : folder.documents;
  MOTLEY_ASSIGN_OR_RETURN(folder.tokens_bin, ParseFile(*files, kTokensBin, folder.tokens * BytesOf(folder.type), where));
  MOTLEY_ASSIGN_OR_RETURN(folder.tokens_idx, ParseFile(*files, kTokensIdx, 34 + 12 * sequences + 8 * (groups + 1), where));
  if (!files->contains(kMaskBin)) return folder;
  if (folder.kind == DataKind::kStream) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": a stream has no ", kMaskBin, "; prepare the folder anew"));
  }
  MOTLEY_ASSIGN_OR_RETURN(folder.mask_bin, ParseFile(*files, kMaskBin, MaskBytes(folder.tokens), where));
  return folder;
}

}  // namespace motley
