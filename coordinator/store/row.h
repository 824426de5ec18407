// A row of the coordinator's database as values, and what tells what was written from what is there: the hash of a row, and the
// sum of a table's hashes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace motley::coordinator {

using Value = std::variant<int64_t, std::string>;
using Row = std::vector<Value>;

enum class TableId {
  kJobs,
  kEpochs,
  kPlans,
  kEvents,
  kDrained,
  kProfiles,
  kAuthorities,
  kTokens,
  kMembers,
  kTerms,
  kUnwanted,
  kHistories
};
inline constexpr size_t kNumTables = 12;

struct TableSpec {
  struct Column {
    std::string name;
    bool integer = false;  // else text
    int64_t since = 1;     // version of the schema
  };
  std::string name;
  std::vector<Column> columns;  // without the hash, which stands behind them
  size_t keys = 1;              // so many of the first columns are the primary key
  int64_t since = 1;            // version of the schema; tables that came later stand behind those before
};
const std::array<TableSpec, kNumTables>& Tables();
// So many of the first ones a database of the version has.
size_t TablesOf(int64_t version);
inline const TableSpec& Spec(TableId id) { return Tables()[static_cast<size_t>(id)]; }
// "a" or "a, 3": the key of a row, for people.
std::string KeyText(const TableSpec& spec, const Row& row);

// Of table, types and values, 128 bits of SHA-256 in hexadecimal digits.
std::string HashOf(std::string_view table, const Row& row);

// Adding a row and taking it away again gives the sum from before; rows in any order give the same sum.
struct TableSum {
  int64_t rows = 0;
  uint64_t high = 0, low = 0;  // sums of the halves of the rows' hashes

  void Add(std::string_view hash) { Change(hash, 1); }
  void Remove(std::string_view hash) { Change(hash, -1); }
  friend bool operator==(const TableSum&, const TableSum&) = default;

 private:
  void Change(std::string_view hash, int64_t sign);
};
using TableSums = std::array<TableSum, kNumTables>;
// Of the tables that a database of the version has.
std::string SumsText(const TableSums& sums, int64_t version);
// False: not what SumsText makes.
bool ParseSums(std::string_view text, int64_t version, TableSums* sums);

}  // namespace motley::coordinator
