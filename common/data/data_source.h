// A job's data, opened: the one place that tells what a path holds. docs/use/own-data.md says it to people.
//   a folder with tokens.json   our tokens
//   X.bin with X.idx beside it  Megatron's tokens
//   X.bin                       llm.c's or nanoGPT's tokens
//   anything else               text, whose bytes are the tokens
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/files.h"
#include "common/data/data_files.h"
#include "common/data/data_summary.h"
#include "common/data/known_parts.h"
#include "common/data/text_source.h"
#include "common/data/token_file.h"
#include "common/data/token_folder.h"
#include "common/data/token_rows.h"
#include "common/data/token_source.h"
#include "common/data/watched_file.h"

namespace motley {

// A file of our folder and what tokens.json says of its contents, which opening it does not compare.
struct UnprovenFile {
  std::shared_ptr<const WatchedFile> file;
  std::vector<std::string> parts;  // SHA-256 (hex) of each kPartBytes
};

struct DataSource {
  DataSummary summary;
  std::unique_ptr<TokenSource> tokens;
  std::unique_ptr<TokenRows> rows;  // of kRows; else null
  std::vector<UnprovenFile> unproven;
  std::vector<std::shared_ptr<const WatchedFile>> whole;  // together they are to have summary.digest
  bool is_digested = true;                                // and had it when they were opened
  const TextSource* text = nullptr;                       // `tokens`, of text: is to have summary.digest, too
  // Whether nothing was left to be compared when it was opened.
  bool is_proven() const { return unproven.empty() && is_digested; }
};

struct DataOptions {
  OpenBeyond beyond;                    // opens what lies beside a file, and what links of a folder lead to, also at reads
  int64_t vocabulary = kAnyVocabulary;  // numbers from here on are refused where they are read
  // What the node has digested just before; empty: nothing. Others' tokens are not read whole for it once more: the summary has
  // it, and no greatest token.
  std::string known_digest;
  // Gets others' tokens that were digested here; null: nobody wants to know.
  KnownParts* known = nullptr;
};

// `path` names it in errors. Text and others' tokens are read once and digested; of our folder sizes are compared. The errors of
// TextSource::Open; INVALID_ARGUMENT: a file's form, FAILED_PRECONDITION: files that do not fit together.
absl::StatusOr<DataSource> OpenDataSource(const FileDescriptor& opened, const std::string& path, const DataOptions& options = {});

// A comparison under way.
struct Proof {
  KnownParts* known = nullptr;       // what is not read again, and gets what is found; null: all is read
  std::atomic<bool> stop{false};     // set by others to end it
  std::atomic<int64_t> bytes{0};     // that are through
  std::atomic<int64_t> not_read{0};  // of them
};

// Reads the data and compares it with its digests, once more where it was proven already; takes a second for 1.4 GB.
// FAILED_PRECONDITION names the file, and of our folder the part, that is not what it was. CANCELLED once it is stopped.
absl::Status Prove(const DataSource& source, Proof& proof);
// That it goes through.
int64_t BytesToProve(const DataSource& source);

// Whether a file of it was altered since the last call, or since its proof began, in a way that may have been its contents
// (watched_file.h), as far as reads have noticed. With `look` all files that are open are looked at; their errors are those of
// reads.
absl::StatusOr<bool> TakeTouched(const DataSource& source, bool look);

}  // namespace motley
