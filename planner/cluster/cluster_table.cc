#include "planner/cluster/cluster_table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/nearest.h"

namespace motley::planner {
namespace {

// As keys have units: by letters alone "gbyte" is next to "gbit", which is an eighth of it.
std::string InOurUnits(const std::string& key) {
  return absl::StrReplaceAll(key, {{"gigabyte", "gb"}, {"gbyte", "gb"}, {"gigabit", "gbit"}, {"gbps", "gbit_per_second"}});
}

}  // namespace

void ClusterProblems::Add(int line, std::string_view key, std::string_view what) {
  constexpr size_t kMost = 20;  // the rest of a hopeless file would only hide the first lines
  if (lines.size() < kMost) lines.push_back(absl::StrCat(source, ":", line, ": ", std::string(key), ": ", std::string(what)));
}

ClusterTable::ClusterTable(const toml::table& table, std::string name, ClusterProblems* problems)
    : table_(table), name_(std::move(name)), problems_(problems) {}

const toml::node* ClusterTable::Find(const char* key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  return table_.get(key);
}

void ClusterTable::Problem(const char* key, std::string_view what) const {
  const toml::node* node = table_.get(key);
  const int at = node != nullptr ? static_cast<int>(node->source().begin.line) : line();
  problems_->Add(std::max(at, 1), name_.empty() ? key : absl::StrCat(name_, ".", key), what);
}

std::optional<std::string> ClusterTable::Text(const char* key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return std::nullopt;
  std::optional<std::string> text = node->value_exact<std::string>();
  if (!text || text->empty()) {
    Problem(key, "must be a string in quotes, and not an empty one");
    return std::nullopt;
  }
  return text;
}

std::optional<bool> ClusterTable::Truth(const char* key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return std::nullopt;
  const std::optional<bool> truth = node->value_exact<bool>();
  if (!truth) Problem(key, "must be true or false");
  return truth;
}

std::vector<std::string> ClusterTable::Texts(const char* key) {
  std::vector<std::string> texts;
  const toml::array* array = Array(key);
  if (array == nullptr) return texts;
  for (const toml::node& node : *array) {
    std::optional<std::string> text = node.value_exact<std::string>();
    if (text) {
      texts.push_back(*std::move(text));
    } else {
      Problem(key, "must be a list of strings");
    }
  }
  return texts;
}

std::optional<int64_t> ClusterTable::Integer(const char* key, int64_t low, int64_t high) {
  const toml::node* node = Find(key);
  if (node == nullptr) return std::nullopt;
  const std::optional<int64_t> value = node->value_exact<int64_t>();
  if (value && *value >= low && *value <= high) return value;
  Problem(key, absl::StrCat("must be a whole number from ", low, " to ", high,
                            value ? absl::StrCat(", got ", *value) : std::string()));
  return std::nullopt;
}

std::optional<double> ClusterTable::Quantity(std::initializer_list<Unit> units, double low, double high) {
  std::optional<double> result;
  const char* first = nullptr;
  for (const Unit& unit : units) {
    const toml::node* node = Find(unit.key);
    if (node == nullptr) continue;
    if (first != nullptr) Problem(unit.key, absl::StrCat("says the same as ", first, "; leave one of them out"));
    first = unit.key;
    if (!node->is_number()) {
      Problem(unit.key, "must be a number");
      continue;
    }
    const double value = *node->value<double>();
    if (std::isfinite(value) && value * unit.factor >= low && value * unit.factor <= high) {
      result = value * unit.factor;
    } else {
      Problem(unit.key, absl::StrCat("is ", value, ", but must lie between ", low / unit.factor, " and ", high / unit.factor,
                                     std::isfinite(value) && value > 0 ? "; is it in this unit?" : ""));
    }
  }
  return result;
}

const toml::array* ClusterTable::Array(const char* key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return nullptr;
  if (!node->is_array()) Problem(key, "must be a list in [brackets]");
  return node->as_array();
}

const toml::table* ClusterTable::Table(const char* key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) Problem(key, absl::StrCat("must be a section [", key, "]"));
  return node->as_table();
}

std::vector<const toml::table*> ClusterTable::Tables(const char* key) {
  std::vector<const toml::table*> tables;
  const toml::node* node = Find(key);
  if (node == nullptr) return tables;
  if (const toml::array* array = node->as_array()) {
    for (const toml::node& entry : *array) {
      if (entry.is_table()) tables.push_back(entry.as_table());
    }
    if (tables.size() == array->size()) return tables;
  }
  Problem(key, absl::StrCat("is written [[", key, "]], once for each"));
  return {};
}

std::vector<std::vector<int64_t>> ClusterTable::IntegerLists(const char* key) {
  std::vector<std::vector<int64_t>> lists;
  const toml::array* array = Array(key);
  if (array == nullptr) return lists;
  for (const toml::node& entry : *array) {
    std::vector<int64_t>& list = lists.emplace_back();
    const toml::array* inner = entry.as_array();
    bool good = inner != nullptr;
    for (size_t i = 0; good && i < inner->size(); ++i) {
      const std::optional<int64_t> value = (*inner)[i].value_exact<int64_t>();
      good = value.has_value();
      if (good) list.push_back(*value);
    }
    if (!good) {
      Problem(key, "must be lists of card numbers, as in [[0, 1], [2, 3]]");
      return {};
    }
  }
  return lists;
}

std::optional<std::vector<int>> ClusterTable::Chosen(const char* key, const std::vector<std::string>& names) {
  if (Find(key) == nullptr) {
    Problem(key, "is missing");
    return std::nullopt;
  }
  std::vector<int> chosen;
  for (const std::string& name : Texts(key)) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const std::string nearest = NearestWord(name, names);
      Problem(key, absl::StrCat("there is no '", name, "'", nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
      return std::nullopt;
    }
    chosen.push_back(static_cast<int>(found - names.begin()));
  }
  return chosen;
}

std::vector<std::vector<double>> ClusterTable::SquareMatrix(const Unit& unit, size_t size, double most) {
  std::vector<std::vector<double>> matrix;
  const toml::array* array = Array(unit.key);
  if (array == nullptr) return matrix;
  for (const toml::node& entry : *array) {
    std::vector<double>& row = matrix.emplace_back();
    const toml::array* inner = entry.as_array();
    const size_t columns = inner != nullptr ? inner->size() : 0;
    for (size_t b = 0; b < columns; ++b) {
      const double value = (*inner)[b].is_number() ? *(*inner)[b].value<double>() * unit.factor : std::nan("");
      if (b + 1 == matrix.size()) {
        row.push_back(0);
      } else if (std::isfinite(value) && value >= 0 && value <= most) {
        row.push_back(value);
      } else {
        problems_->Add(static_cast<int>(entry.source().begin.line), absl::StrCat(name_, ".", unit.key),
                       absl::StrCat("row ", matrix.size(), ", column ", b + 1, " must be a number from 0 (not known) to ",
                                    most / unit.factor));
        return {};
      }
    }
    if (row.size() != size) {
      problems_->Add(static_cast<int>(entry.source().begin.line), absl::StrCat(name_, ".", unit.key),
                     absl::StrCat("row ", matrix.size(), " has ", row.size(), " numbers for ", size, " nodes"));
      return {};
    }
  }
  if (matrix.size() != size) {
    Problem(unit.key, absl::StrCat("has ", matrix.size(), " rows for ", size, " nodes"));
    return {};
  }
  return matrix;
}

void ClusterTable::Finish() {
  for (const auto& [key, node] : table_) {
    const std::string name(key.str());
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const std::string nearest = NearestWord(InOurUnits(name), known_);
    problems_->Add(static_cast<int>(node.source().begin.line), name_.empty() ? name : absl::StrCat(name_, ".", name),
                   nearest.empty() ? absl::StrCat("unknown key; known are ", absl::StrJoin(known_, ", "))
                                   : absl::StrCat("unknown key; did you mean '", nearest, "'?"));
  }
}

CardKind KindOfCard(const GpuSpec& gpu) {
  CardKind kind = {std::string(gpu.name),      gpu.fp32_flops, gpu.tf32_flops, gpu.fp16_flops, gpu.bf16_flops, gpu.memory_bytes,
                   gpu.memory_bytes_per_second};
  kind.parts = RowOf(gpu.family).parts;
  return kind;
}

}  // namespace motley::planner
