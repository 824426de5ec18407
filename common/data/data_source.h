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
};

// `path` names it in errors; `beyond` opens what lies beside a file, and what links of a folder lead to, also at reads. Numbers
// from `vocabulary` on are refused where they are read. Text and others' tokens are read once and digested; of our folder sizes
// are compared. The errors of TextSource::Open; INVALID_ARGUMENT: a file's form, FAILED_PRECONDITION: files that do not fit
// together.
absl::StatusOr<DataSource> OpenDataSource(const FileDescriptor& opened, const std::string& path, const OpenBeyond& beyond = {},
                                          int64_t vocabulary = kAnyVocabulary);

// Reads the files whole and compares their parts; takes a second for 1.4 GB. FAILED_PRECONDITION names the first part that is not
// what it was. CANCELLED once `stop` is set.
absl::Status ProveFiles(const std::vector<UnprovenFile>& files, const std::atomic<bool>& stop);

}  // namespace motley
