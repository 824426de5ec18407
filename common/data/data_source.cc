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

absl::Status FeedProof(std::string_view block, Proof& proof, Sha256& sha) {
  if (proof.stop) return absl::CancelledError("the data are not compared any more");
  sha.Update(block.data(), block.size());
  proof.bytes += static_cast<int64_t>(block.size());
  return absl::OkStatus();
}

absl::Status AnotherDigest(const std::string& path, const std::string& digest, const std::string& expected) {
  return absl::FailedPreconditionError(absl::StrCat("data file ", path, " has digest ", digest, ", the job was planned for ",
                                                    expected, "; put the same files on every node"));
}

// Feeds a part of the file.
absl::Status Digest(const WatchedFile& file, int64_t begin, int64_t bytes, Proof& proof, Sha256& sha) {
  return file.ForEachBlock(begin, bytes, [&](std::string_view block) { return FeedProof(block, proof, sha); });
}

// What is known is not read again.
bool Knows(Proof& proof, const FilePart& part, const std::string& digest, int64_t bytes) {
  if (proof.known == nullptr || !proof.known->Has(part, digest)) return false;
  proof.bytes += bytes;
  proof.not_read += bytes;
  return true;
}

// ---- files of tokens by others ----

// As they are before they are read: what is altered meanwhile is not known by it later.
absl::StatusOr<std::vector<FilePart>> BeginWhole(const DataSource& source) {
  std::vector<FilePart> parts;
  for (const WatchedFilePtr& file : source.whole) {
    MOTLEY_RETURN_IF_ERROR(file->BeginComparison());
    parts.push_back({file->mark(), file->altered_at(), KnownParts::kWholeFile});
  }
  return parts;
}

void AddAll(const std::vector<FilePart>& parts, const std::string& digest, KnownParts* known) {
  for (const FilePart& part : parts) {
    if (known != nullptr) known->Add(part, digest);
  }
}

// A file beside the data's own; null: it is not there.
absl::StatusOr<WatchedFilePtr> OpenBeside(const std::string& path, const OpenBeyond& beyond) {
  absl::StatusOr<FileDescriptor> opened = beyond ? beyond(path) : OpenData(path);
  if (absl::IsNotFound(opened.status())) return WatchedFilePtr();
  MOTLEY_RETURN_IF_ERROR(opened.status());
  return WatchedFile::Watch(*std::move(opened), path);
}

// Its digest is of the file, and of the index where there is one: with another type of numbers the same file is other tokens.
absl::StatusOr<DataSource> SourceOf(const WatchedFilePtr& bin, const WatchedFilePtr& index, const BinLayout& layout,
                                    const DataOptions& options) {
  MOTLEY_ASSIGN_OR_RETURN(std::unique_ptr<TokenFile> tokens,
                          TokenFile::Open(bin, layout.type, layout.offset, layout.tokens, options.vocabulary));
  DataSource source;
  DataSummary& summary = source.summary;
  summary.kind = DataKind::kStream;
  summary.bytes = bin->bytes() + (index != nullptr ? index->bytes() : 0);
  summary.tokens = layout.tokens;
  summary.trained_tokens = std::max<int64_t>(layout.tokens - 1, 0);
  summary.digest = options.known_digest;
  source.whole.push_back(bin);
  if (index != nullptr) source.whole.push_back(index);
  source.is_digested = summary.digest.empty();
  if (source.is_digested) {
    MOTLEY_ASSIGN_OR_RETURN(const std::vector<FilePart> parts, BeginWhole(source));
    Sha256 sha;
    MOTLEY_ASSIGN_OR_RETURN(summary.greatest_token,
                            tokens->Greatest([&](std::string_view block) { sha.Update(block.data(), block.size()); }));
    Proof proof;
    if (index != nullptr) MOTLEY_RETURN_IF_ERROR(Digest(*index, 0, index->bytes(), proof, sha));
    summary.digest = sha.Hex();
    AddAll(parts, summary.digest, options.known);
  }
  source.tokens = std::move(tokens);
  return source;
}

absl::StatusOr<DataSource> OpenMegatron(const WatchedFilePtr& bin, const WatchedFilePtr& idx, const DataOptions& options) {
  MOTLEY_ASSIGN_OR_RETURN(const TokenIndex index, TokenIndex::Open(ReaderOf(idx), idx->bytes(), idx->path()));
  const int64_t size = BytesOf(index.type());
  if (bin->bytes() % size != 0) {
    return WrongDataFile(bin->path(),
                         absl::StrCat("has ", bin->bytes(), " bytes, and its index says tokens of ", size,
                                      " bytes each: it was cut off, or the two are not of one pair; copy them again"));
  }
  const BinLayout layout{index.type(), 0, bin->bytes() / size};
  MOTLEY_RETURN_IF_ERROR(index.CheckWhole(layout.tokens));
  return SourceOf(bin, idx, layout, options);
}

absl::StatusOr<DataSource> OpenBin(const WatchedFilePtr& bin, const DataOptions& options) {
  const std::string stem = bin->path().substr(0, bin->path().size() - kBin.size());
  if (EndsIn(bin->path(), absl::StrCat("/", kTokensBin))) {
    const std::string folder = bin->path().substr(0, bin->path().size() - std::string_view(kTokensBin).size() - 1);
    MOTLEY_ASSIGN_OR_RETURN(const WatchedFilePtr json, OpenBeside(absl::StrCat(folder, "/", kTokensJson), options.beyond));
    if (json != nullptr)
      return WrongDataFile(bin->path(), absl::StrCat("is a part of a folder of tokens; give the folder: ", folder));
  }
  MOTLEY_ASSIGN_OR_RETURN(const WatchedFilePtr idx, OpenBeside(absl::StrCat(stem, std::string(kIdx)), options.beyond));
  if (idx != nullptr) return OpenMegatron(bin, idx, options);
  MOTLEY_ASSIGN_OR_RETURN(const std::string head, HeadOf(*bin));
  MOTLEY_RETURN_IF_ERROR(CheckIsBareTokens(bin->path(), head));
  MOTLEY_ASSIGN_OR_RETURN(const BinLayout layout, ParseBinLayout(head, bin->bytes(), bin->path()));
  return SourceOf(bin, nullptr, layout, options);
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
  source.text = text.get();
  source.tokens = std::move(text);
  return source;
}

}  // namespace

absl::StatusOr<DataSource> OpenDataSource(const FileDescriptor& opened, const std::string& path, const DataOptions& options) {
  if (IsDataFolder(opened)) {
    const Folder folder{opened, path, options.beyond};
    MOTLEY_ASSIGN_OR_RETURN(const std::optional<std::string> json, TokensJsonOf(folder));
    return json ? OpenTokenFolder(folder, *json, options.vocabulary) : OpenText(opened, path, options.beyond);
  }
  if (EndsIn(path, kIdx)) return WrongDataFile(path, "is an index of tokens; give the .bin beside it as data.path");
  if (!EndsIn(path, kBin)) return OpenText(opened, path, options.beyond);
  MOTLEY_ASSIGN_OR_RETURN(FileDescriptor again, Again(opened, path));
  MOTLEY_ASSIGN_OR_RETURN(const WatchedFilePtr bin, WatchedFile::Watch(std::move(again), path));
  return OpenBin(bin, options);
}

namespace {

absl::Status ProveParts(const UnprovenFile& unproven, Proof& proof) {
  const WatchedFile& file = *unproven.file;
  MOTLEY_RETURN_IF_ERROR(file.BeginComparison());
  for (size_t number = 0; number < unproven.parts.size(); ++number) {
    const std::string& expected = unproven.parts[number];
    const int64_t begin = static_cast<int64_t>(number) * kPartBytes, bytes = std::min(kPartBytes, file.bytes() - begin);
    // As it is before it is read: what is altered meanwhile is not known by it later.
    const FilePart part{file.mark(), file.altered_at(), static_cast<int64_t>(number)};
    if (Knows(proof, part, expected, bytes)) continue;
    Sha256 sha;
    MOTLEY_RETURN_IF_ERROR(Digest(file, begin, bytes, proof, sha));
    if (sha.Hex() != expected) {
      return absl::FailedPreconditionError(absl::StrCat("data file ", file.path(), " is not what was prepared: its bytes ", begin,
                                                        " to ", begin + bytes, " have another digest than ", kTokensJson,
                                                        " says; copy the folder again"));
    }
    if (proof.known != nullptr) proof.known->Add(part, expected);
  }
  return absl::OkStatus();
}

absl::Status ProveWhole(const DataSource& source, Proof& proof) {
  const std::string& expected = source.summary.digest;
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<FilePart> parts, BeginWhole(source));
  const bool known = proof.known != nullptr && std::all_of(parts.begin(), parts.end(), [&](const FilePart& part) {
                       return proof.known->Has(part, expected);
                     });
  if (known) {
    proof.bytes += BytesToProve(source);
    proof.not_read += BytesToProve(source);
    return absl::OkStatus();
  }
  Sha256 sha;
  for (const WatchedFilePtr& file : source.whole) MOTLEY_RETURN_IF_ERROR(Digest(*file, 0, file->bytes(), proof, sha));
  const std::string digest = sha.Hex();
  if (digest != expected) return AnotherDigest(source.whole[0]->path(), digest, expected);
  AddAll(parts, expected, proof.known);
  return absl::OkStatus();
}

}  // namespace

absl::Status Prove(const DataSource& source, Proof& proof) {
  for (const UnprovenFile& unproven : source.unproven) MOTLEY_RETURN_IF_ERROR(ProveParts(unproven, proof));
  if (!source.whole.empty()) return ProveWhole(source, proof);
  if (source.text == nullptr) return absl::OkStatus();
  MOTLEY_ASSIGN_OR_RETURN(const std::string digest, source.text->DigestAgain([&proof](std::string_view block, Sha256& sha) {
    return FeedProof(block, proof, sha);
  }));
  return digest == source.summary.digest ? absl::OkStatus() : AnotherDigest(source.text->path(), digest, source.summary.digest);
}

int64_t BytesToProve(const DataSource& source) {
  int64_t bytes = source.text != nullptr ? source.text->num_tokens() : 0;
  for (const UnprovenFile& unproven : source.unproven) bytes += unproven.file->bytes();
  for (const WatchedFilePtr& file : source.whole) bytes += file->bytes();
  return bytes;
}

absl::StatusOr<bool> TakeTouched(const DataSource& source, bool look) {
  bool touched = false;
  const auto take = [&](const WatchedFile& file) -> absl::Status {
    if (look) MOTLEY_RETURN_IF_ERROR(file.CheckUnchanged());
    touched |= file.TakeTouched();
    return absl::OkStatus();
  };
  for (const UnprovenFile& unproven : source.unproven) MOTLEY_RETURN_IF_ERROR(take(*unproven.file));
  for (const WatchedFilePtr& file : source.whole) MOTLEY_RETURN_IF_ERROR(take(*file));
  if (source.text != nullptr) {
    MOTLEY_RETURN_IF_ERROR(source.text->ForEachOpen(take));
    touched |= source.text->TakeTouched();
  }
  return touched;
}

}  // namespace motley
