// What a bench found: rows with a value and, where there is one, a goal. Printed as a table, or with `--json F` written as
// {"rows": [{name, value, unit, goal, met, limit}, ...]}; goal, met and limit are null where a row has no goal.
#pragma once

#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace motley::bench {

// Which side of the goal is good.
enum class Limit { kAtMost, kAtLeast };

struct Row {
  std::string name;
  double value = 0;
  std::string unit;  // "s", "ms", "MiB", "%", "samples/s", "1" for a ratio or count
  std::optional<double> goal;
  Limit limit = Limit::kAtMost;
  std::optional<bool> decided;  // overrides the comparison, where the goal is not a number's side
  bool met() const {
    if (decided) return *decided;
    if (!goal) return true;
    return limit == Limit::kAtMost ? value <= *goal : value >= *goal;
  }
};

class Report {
 public:
  void Add(std::string name, double value, std::string unit) {
    rows_.push_back({std::move(name), value, std::move(unit), {}, {}, {}});
  }
  void AddGoal(std::string name, double value, std::string unit, double goal, Limit limit = Limit::kAtMost) {
    rows_.push_back({std::move(name), value, std::move(unit), goal, limit, {}});
  }
  // A yes or no: value 1 or 0, goal 1.
  void AddCheck(std::string name, bool ok) { rows_.push_back({std::move(name), ok ? 1.0 : 0.0, "1", 1.0, Limit::kAtLeast, ok}); }
  void AddRow(Row row) { rows_.push_back(std::move(row)); }

  const std::vector<Row>& rows() const { return rows_; }
  int missed() const {
    int count = 0;
    for (const Row& row : rows_) count += row.met() ? 0 : 1;
    return count;
  }

  void Print(std::FILE* out = stdout) const {
    size_t width = 20;
    for (const Row& row : rows_) width = row.name.size() > width ? row.name.size() : width;
    for (const Row& row : rows_) {
      std::fprintf(out, "%-*s %12.6g %-10s", static_cast<int>(width), row.name.c_str(), row.value, row.unit.c_str());
      if (row.goal) {
        std::fprintf(out, " goal %s %.6g  %s", row.limit == Limit::kAtMost ? "<=" : ">=", *row.goal,
                     row.met() ? "met" : "MISSED");
      }
      std::fputc('\n', out);
    }
  }

  // False when the file cannot be written.
  bool WriteJson(const std::string& path) const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Row& row : rows_) {
      nlohmann::ordered_json json = {{"name", row.name}, {"value", row.value}, {"unit", row.unit},
                                     {"goal", nullptr},  {"met", nullptr},     {"limit", nullptr}};
      if (row.goal) {
        json["goal"] = *row.goal;
        json["met"] = row.met();
        json["limit"] = row.limit == Limit::kAtMost ? "at most" : "at least";
      }
      list.push_back(std::move(json));
    }
    std::ofstream file(path);
    file << nlohmann::ordered_json{{"rows", std::move(list)}}.dump(1) << '\n';
    return static_cast<bool>(file.flush());
  }

  // The end of a bench's main: the table, or with `--json F` the file. Returns the exit code; a missed goal is no error.
  int Finish(int argc, char** argv) const {
    const std::string path = Flag(argc, argv, "--json");
    if (path.empty()) {
      Print();
      return 0;
    }
    if (WriteJson(path)) return 0;
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    return 1;
  }

  // The word after `flag`, or empty.
  static std::string Flag(int argc, char** argv, const char* flag) {
    for (int i = 1; i + 1 < argc; ++i) {
      if (std::strcmp(argv[i], flag) == 0) return argv[i + 1];
    }
    return "";
  }

 private:
  std::vector<Row> rows_;
};

}  // namespace motley::bench
