#include "common/data/data_source.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/beneath.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/data/data_error.h"
#include "common/data/data_format.h"
#include "common/data/text_source.h"
#include "common/data/token_index.h"

namespace motley {
namespace {

using WatchedFilePtr = std::shared_ptr<const WatchedFile>;

constexpr std::string_view kBin = ".bin", kIdx = ".idx";
constexpr int64_t kHeadBytes = 4096;

bool EndsIn(const std::string& path, std::string_view ending) {
  return absl::EndsWith(absl::AsciiStrToLower(path), absl::string_view(ending.data(), ending.size()));
}

absl::StatusOr<std::string> HeadOf(const WatchedFile& file) {
  std::string head(static_cast<size_t>(std::min(file.bytes(), kHeadBytes)), '\0');
  MOTLEY_RETURN_IF_ERROR(file.Read(0, head.data(), static_cast<int64_t>(head.size())));
  return head;
}

TokenIndex::ReadBytes ReaderOf(WatchedFilePtr file) {
  return [file = std::move(file)](int64_t offset, void* out, int64_t bytes) { return file->Read(offset, out, bytes); };
}

// ---- files of tokens by others ----

// A file beside the data's own; null: it is not there.
absl::StatusOr<WatchedFilePtr> OpenBeside(const std::string& path, const OpenBeyond& beyond) {
  absl::StatusOr<FileDescriptor> opened = beyond ? beyond(path) : OpenData(path);
  if (absl::IsNotFound(opened.status())) return WatchedFilePtr();
  MOTLEY_RETURN_IF_ERROR(opened.status());
  return WatchedFile::Watch(*std::move(opened), path);
}

// Digests the file, and the index where there is one: with another type of numbers the same file is other tokens.
absl::StatusOr<DataSource> SourceOf(const WatchedFilePtr& bin, const WatchedFilePtr& index, const BinLayout& layout,
                                    int64_t vocabulary) {
  MOTLEY_ASSIGN_OR_RETURN(std::unique_ptr<TokenFile> tokens,
                          TokenFile::Open(bin, layout.type, layout.offset, layout.tokens, vocabulary));
  DataSource source;
  DataSummary& summary = source.summary;
  Sha256 sha;
  const auto digest = [&](std::string_view block) { sha.Update(block.data(), block.size()); };
  MOTLEY_ASSIGN_OR_RETURN(summary.greatest_token, tokens->Greatest(digest));
  summary.bytes = bin->bytes();
  if (index != nullptr) {
    summary.bytes += index->bytes();
    MOTLEY_RETURN_IF_ERROR(index->ForEachBlock(0, index->bytes(), [&](std::string_view block) -> absl::Status {
      digest(block);
      return absl::OkStatus();
    }));
  }
  summary.digest = sha.Hex();
  summary.kind = DataKind::kStream;
  summary.tokens = layout.tokens;
  summary.trained_tokens = std::max<int64_t>(layout.tokens - 1, 0);
  source.tokens = std::move(tokens);
  return source;
}

absl::StatusOr<DataSource> OpenMegatron(const WatchedFilePtr& bin, const WatchedFilePtr& idx, int64_t vocabulary) {
  MOTLEY_ASSIGN_OR_RETURN(const TokenIndex index, TokenIndex::Open(ReaderOf(idx), idx->bytes(), idx->path()));
  const int64_t size = BytesOf(index.type());
  if (bin->bytes() % size != 0) {
    return WrongDataFile(bin->path(),
                         absl::StrCat("has ", bin->bytes(), " bytes, and its index says tokens of ", size,
                                      " bytes each: it was cut off, or the two are not of one pair; copy them again"));
  }
  const BinLayout layout{index.type(), 0, bin->bytes() / size};
  MOTLEY_RETURN_IF_ERROR(index.CheckWhole(layout.tokens));
  return SourceOf(bin, idx, layout, vocabulary);
}

absl::StatusOr<DataSource> OpenBin(WatchedFilePtr bin, const OpenBeyond& beyond, int64_t vocabulary) {
  const std::string stem = bin->path().substr(0, bin->path().size() - kBin.size());
  if (EndsIn(bin->path(), absl::StrCat("/", kTokensBin))) {
    const std::string folder = bin->path().substr(0, bin->path().size() - std::string_view(kTokensBin).size() - 1);
    MOTLEY_ASSIGN_OR_RETURN(const WatchedFilePtr json, OpenBeside(absl::StrCat(folder, "/", kTokensJson), beyond));
    if (json != nullptr)
      return WrongDataFile(bin->path(), absl::StrCat("is a part of a folder of tokens; give the folder: ", folder));
  }
  MOTLEY_ASSIGN_OR_RETURN(const WatchedFilePtr idx, OpenBeside(absl::StrCat(stem, std::string(kIdx)), beyond));
  if (idx != nullptr) return OpenMegatron(bin, idx, vocabulary);
  MOTLEY_ASSIGN_OR_RETURN(const std::string head, HeadOf(*bin));
  MOTLEY_RETURN_IF_ERROR(CheckIsBareTokens(bin->path(), head));
  MOTLEY_ASSIGN_OR_RETURN(const BinLayout layout, ParseBinLayout(head, bin->bytes(), bin->path()));
  return SourceOf(bin, nullptr, layout, vocabulary);
}

// ---- our folder ----

struct Folder {
  const FileDescriptor& opened;
  const std::string& path;
  const OpenBeyond& beyond;
};

absl::StatusOr<WatchedFilePtr> OpenInFolder(const Folder& folder, const char* name) {
  MOTLEY_ASSIGN_OR_RETURN(FileDescriptor opened, OpenInDataFolder(folder.opened, folder.path, name, folder.beyond));
  return WatchedFile::Watch(std::move(opened), absl::StrCat(folder.path, "/", name));
}

bool Holds(const Folder& folder, const char* name) {
  return OpenInDataFolder(folder.opened, folder.path, name, folder.beyond).ok();
}

absl::StatusOr<WatchedFilePtr> OpenParted(const Folder& folder, const char* name, const PartedFile& file, DataSource& source) {
  MOTLEY_ASSIGN_OR_RETURN(const WatchedFilePtr opened, OpenInFolder(folder, name));
  if (opened->bytes() != file.bytes) {
    return absl::FailedPreconditionError(absl::StrCat("data file ", opened->path(), " has ", opened->bytes(), " bytes, where ",
                                                      kTokensJson, " beside it says ", file.bytes,
                                                      ": it was cut off, or is another folder's; copy the folder again"));
  }
  source.summary.bytes += file.bytes;
  source.unproven.push_back({opened, file.parts});
  return opened;
}

absl::StatusOr<DataSource> OpenTokenFolder(const Folder& folder, const std::string& json, int64_t vocabulary) {
  MOTLEY_ASSIGN_OR_RETURN(const TokenFolder told, ParseTokenFolder(json, absl::StrCat(folder.path, "/", kTokensJson)));
  DataSource source;
  source.summary = {.bytes = static_cast<int64_t>(json.size()),
                    .digest = Sha256Hex(json),
                    .kind = told.kind,
                    .tokens = told.tokens,
                    .rows = told.rows,
                    .row_tokens = told.seq_len,
                    .greatest_token = told.greatest_token,
                    .trained_tokens = told.trained_tokens,
                    .source_bytes = told.source_bytes,
                    .tokenizer = told.tokenizer};
  MOTLEY_ASSIGN_OR_RETURN(const WatchedFilePtr bin, OpenParted(folder, kTokensBin, told.tokens_bin, source));
  MOTLEY_ASSIGN_OR_RETURN(const WatchedFilePtr idx, OpenParted(folder, kTokensIdx, told.tokens_idx, source));
  WatchedFilePtr mask;
  if (told.mask_bin.bytes > 0) {
    MOTLEY_ASSIGN_OR_RETURN(mask, OpenParted(folder, kMaskBin, told.mask_bin, source));
  }
  MOTLEY_ASSIGN_OR_RETURN(TokenIndex index, TokenIndex::Open(ReaderOf(idx), idx->bytes(), idx->path()));
  const int64_t groups = told.kind == DataKind::kRows ? told.rows : told.documents;
  if (index.type() != told.type || index.sequences() != told.documents || index.documents() != groups) {
    return absl::FailedPreconditionError(absl::StrCat("data file ", idx->path(), " is not of the folder whose ", kTokensJson,
                                                      " lies beside it; copy the folder again"));
  }
  MOTLEY_ASSIGN_OR_RETURN(source.tokens, TokenFile::Open(bin, told.type, 0, told.tokens, vocabulary));
  if (told.kind == DataKind::kRows) {
    source.rows = std::make_unique<TokenRows>(std::move(index), std::move(mask), *source.tokens, told.seq_len);
  }
  return source;
}

// The text of tokens.json where the folder is one of tokens; nothing: it is one of text.
absl::StatusOr<std::optional<std::string>> TokensJsonOf(const Folder& folder) {
  const absl::StatusOr<FileDescriptor> opened = OpenInDataFolder(folder.opened, folder.path, kTokensJson, folder.beyond);
  if (!opened.ok()) {
    if (absl::IsInvalidArgument(opened.status())) return std::nullopt;  // no regular file: the text's walk says what it is
    if (!absl::IsNotFound(opened.status())) return opened.status();
    if (!Holds(folder, kTokensBin) || !Holds(folder, kTokensIdx)) return std::nullopt;
    return absl::InvalidArgumentError(
        absl::StrCat("data folder ", folder.path, " holds ", kTokensBin, " and no ", kTokensJson,
                     ", which is written last: motley data prepare did not end there; run it again"));
  }
  absl::StatusOr<std::string> json = ReadSmallFile(*opened, absl::StrCat(folder.path, "/", kTokensJson), kLargestTokensJson);
  MOTLEY_RETURN_IF_ERROR(json.status());
  if (!IsMeantAsTokenFolder(*json) && !Holds(folder, kTokensBin)) return std::nullopt;
  return *std::move(json);
}

// ---- text ----

absl::StatusOr<DataSource> OpenText(const FileDescriptor& opened, const std::string& path, const OpenBeyond& beyond) {
  MOTLEY_ASSIGN_OR_RETURN(std::unique_ptr<TextSource> text, TextSource::Open(opened, path, beyond));
  DataSource source;
  source.summary = TextSummary(text->num_tokens(), text->digest());
  source.tokens = std::move(text);
  return source;
}

}  // namespace

absl::StatusOr<DataSource> OpenDataSource(const FileDescriptor& opened, const std::string& path, const OpenBeyond& beyond,
                                          int64_t vocabulary) {
  if (IsDataFolder(opened)) {
    const Folder folder{opened, path, beyond};
    MOTLEY_ASSIGN_OR_RETURN(const std::optional<std::string> json, TokensJsonOf(folder));
    return json ? OpenTokenFolder(folder, *json, vocabulary) : OpenText(opened, path, beyond);
  }
  if (EndsIn(path, kIdx)) return WrongDataFile(path, "is an index of tokens; give the .bin beside it as data.path");
  if (!EndsIn(path, kBin)) return OpenText(opened, path, beyond);
  MOTLEY_ASSIGN_OR_RETURN(FileDescriptor again, Again(opened, path));
  MOTLEY_ASSIGN_OR_RETURN(WatchedFilePtr bin, WatchedFile::Watch(std::move(again), path));
  return OpenBin(std::move(bin), beyond, vocabulary);
}

absl::Status ProveFiles(const std::vector<UnprovenFile>& files, const std::atomic<bool>& stop) {
  for (const UnprovenFile& unproven : files) {
    const WatchedFile& file = *unproven.file;
    for (size_t part = 0; part < unproven.parts.size(); ++part) {
      const int64_t begin = static_cast<int64_t>(part) * kPartBytes, bytes = std::min(kPartBytes, file.bytes() - begin);
      Sha256 sha;
      MOTLEY_RETURN_IF_ERROR(file.ForEachBlock(begin, bytes, [&](std::string_view block) -> absl::Status {
        if (stop) return absl::CancelledError("the data are not compared any more");
        sha.Update(block.data(), block.size());
        return absl::OkStatus();
      }));
      if (sha.Hex() == unproven.parts[part]) continue;
      return absl::FailedPreconditionError(absl::StrCat("data file ", file.path(), " is not what was prepared: its bytes ", begin,
                                                        " to ", begin + bytes, " have another digest than ", kTokensJson,
                                                        " says; copy the folder again"));
    }
  }
  return absl::OkStatus();
}

}  // namespace motley
