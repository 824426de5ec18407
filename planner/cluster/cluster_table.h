// One table of a cluster file, read strictly: every key that is asked for is known, all others are errors at the end.
// Problems are collected, so that a user mends a file in one go.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/device/device_table.h"
#include "planner/cluster/cluster.h"

namespace motley::planner {

// The unit stands in the key: value x factor is in bytes, seconds, FLOP/s.
struct Unit {
  const char* key;
  double factor;
};

struct ClusterProblems {
  std::string source;
  std::vector<std::string> lines;
  // "SOURCE:LINE: KEY: WHAT"
  void Add(int line, std::string_view key, std::string_view what);
};

class ClusterTable {
 public:
  // `name`: of the section, empty for the file itself. All three outlive this.
  ClusterTable(const toml::table& table, std::string name, ClusterProblems* problems);

  bool Has(const char* key) const { return table_.contains(key); }
  std::optional<std::string> Text(const char* key);
  std::vector<std::string> Texts(const char* key);
  std::optional<bool> Truth(const char* key);
  std::optional<int64_t> Integer(const char* key, int64_t low, int64_t high);
  // In whichever of the units it is given; low and high after conversion. Two units at once are a problem.
  std::optional<double> Quantity(std::initializer_list<Unit> units, double low, double high);
  const toml::array* Array(const char* key);
  const toml::table* Table(const char* key);
  std::vector<const toml::table*> Tables(const char* key);  // [[key]]
  std::vector<std::vector<int64_t>> IntegerLists(const char* key);
  // Indices of the listed names; nothing when one is not known.
  std::optional<std::vector<int>> Chosen(const char* key, const std::vector<std::string>& names);
  // Converted; empty when the key is not there or wrong. Off the diagonal 0 to `most`; the diagonal is not looked at.
  std::vector<std::vector<double>> SquareMatrix(const Unit& unit, size_t size, double most);

  // At the key's line, or the table's where there is no such key.
  void Problem(const char* key, std::string_view what) const;
  void Finish();  // reports keys that nobody asked for
  int line() const { return static_cast<int>(table_.source().begin.line); }

 private:
  const toml::node* Find(const char* key);
  const toml::table& table_;
  std::string name_;
  ClusterProblems* problems_;
  std::vector<std::string> known_;
};

CardKind KindOfCard(const GpuSpec& gpu);

}  // namespace motley::planner
