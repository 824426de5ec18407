#include "coordinator/store/row.h"

#include <charconv>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/sha256.h"

namespace motley::coordinator {
namespace {

constexpr size_t kHashDigits = 32;

TableSpec::Column Text(const char* name, int64_t since = 1) { return {name, false, since}; }
TableSpec::Column Integer(const char* name, int64_t since = 1) { return {name, true, since}; }

void AppendSized(std::string* out, char type, std::string_view bytes) {
  const uint64_t size = bytes.size();
  out->push_back(type);
  out->append(reinterpret_cast<const char*>(&size), sizeof(size));
  out->append(bytes);
}

uint64_t Half(std::string_view hash, size_t at) {
  uint64_t value = 0;
  if (hash.size() == kHashDigits) std::from_chars(hash.data() + at, hash.data() + at + kHashDigits / 2, value, 16);
  return value;
}

}  // namespace

const std::array<TableSpec, kNumTables>& Tables() {
  static const auto* const tables = new std::array<TableSpec, kNumTables>{{
      {"jobs",
       {Text("id"),
        Text("config"),
        Text("phase"),
        Text("reason"),
        Integer("epoch"),
        Integer("step"),
        Integer("submitted_unix_ms"),
        Integer("started_unix_ms"),
        Integer("finished_unix_ms"),
        Text("last_step"),
        Text("newest_checkpoint"),
        Text("predicted_step_seconds"),
        Integer("stop_requested"),
        Text("data_digest"),
        Integer("plannings_begun", 2),
        Integer("data_bytes", 3),
        Integer("error_code", 3),
        Integer("owner_uid", 9),
        Text("owner", 9),
        Text("uid", 10),
        Integer("has_unnamed_checkpoints", 10),
        Text("adopted", 11),
        Text("initial_of", 11),
        Text("data", 11),
        Text("initial_digest", 11),
        Text("safe_checkpoint", 12),
        Integer("go_back_epoch", 12),
        Integer("go_back_step", 12),
        Integer("adopted_below", 14)},
       1},
      {"epochs", {Text("job"), Integer("epoch"), Integer("unix_ms"), Text("ranks")}, 2},
      {"plans",
       {Text("job"), Integer("epoch"), Text("plan_json"), Text("plan_text"), Text("explanation"), Text("trace_json"),
        Text("programs"), Text("inputs", 5)},
       1},
      {"events",
       {Integer("sequence"), Integer("unix_ms"), Text("job"), Text("kind"), Text("node"), Text("device"), Integer("epoch"),
        Text("message")},
       1},
      {"drained", {Text("node")}, 1},
      {"profiles",
       {Text("kind"), Text("digest"), Text("device"), Text("body"), Text("tokens_per_second"), Text("flops_per_second"),
        Integer("sequence"), Text("model", 4)},
       2},
      {"authorities", {Integer("number"), Text("private_key"), Text("certificate"), Integer("made_unix_ms")}, 1, 7},
      {"tokens",
       {Text("id"), Text("secret_hash"), Integer("reusable"), Integer("joins"), Integer("made_unix_ms"),
        Integer("expires_unix_ms")},
       1,
       7},
      {"members",
       {Text("node"), Text("key_hash"), Text("token"), Integer("authority"), Integer("joined_unix_ms"), Integer("until_unix_ms"),
        Text("coordinators", 8)},
       1,
       7},
      {"terms", {Integer("number"), Text("id"), Integer("own")}, 2, 8},
      {"unwanted", {Text("node"), Text("job"), Text("uid")}, 3, 13},
      {"histories", {Text("job"), Text("bytes")}, 1, 15},
  }};
  return *tables;
}

size_t TablesOf(int64_t version) {
  size_t count = 0;
  for (const TableSpec& spec : Tables()) count += spec.since <= version;
  return count;
}

std::string KeyText(const TableSpec& spec, const Row& row) {
  std::string text;
  for (size_t i = 0; i < spec.keys && i < row.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ");
    if (const auto* number = std::get_if<int64_t>(&row[i])) {
      absl::StrAppend(&text, *number);
    } else {
      absl::StrAppend(&text, "'", absl::CHexEscape(std::get<std::string>(row[i]).substr(0, 80)), "'");
    }
  }
  return text;
}

std::string HashOf(std::string_view table, const Row& row) {
  std::string bytes;
  AppendSized(&bytes, 't', table);
  for (const Value& value : row) {
    if (const auto* number = std::get_if<int64_t>(&value)) {
      AppendSized(&bytes, 'i', std::string_view(reinterpret_cast<const char*>(number), sizeof(*number)));
    } else {
      AppendSized(&bytes, 's', std::get<std::string>(value));
    }
  }
  return Sha256Hex(bytes).substr(0, kHashDigits);
}

void TableSum::Change(std::string_view hash, int64_t sign) {
  rows += sign;
  high += static_cast<uint64_t>(sign) * Half(hash, 0);
  low += static_cast<uint64_t>(sign) * Half(hash, kHashDigits / 2);
}

std::string SumsText(const TableSums& sums, int64_t version) {
  std::string text;
  for (size_t t = 0; t < TablesOf(version); ++t) {
    absl::StrAppend(&text, t == 0 ? "" : " ", absl::StrFormat("%d:%016x%016x", sums[t].rows, sums[t].high, sums[t].low));
  }
  return text;
}

bool ParseSums(std::string_view text, int64_t version, TableSums* sums) {
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ' ');
  if (parts.size() != TablesOf(version)) return false;
  for (size_t t = 0; t < parts.size(); ++t) {
    const std::pair<std::string, std::string> part = absl::StrSplit(parts[t], absl::MaxSplits(':', 1));
    TableSum& sum = (*sums)[t];
    if (!absl::SimpleAtoi(part.first, &sum.rows) || part.second.size() != kHashDigits) return false;
    sum.high = Half(part.second, 0);
    sum.low = Half(part.second, kHashDigits / 2);
  }
  return true;
}

}  // namespace motley::coordinator
