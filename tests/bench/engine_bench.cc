// The engine against what was simulated and against closed forms, in one run: ranks are threads of this process on emulated
// devices. All rows are measured over a bound, medians of several steps. docs/inside/pipelines.md, "Measured".
//   engine_bench [--json F] [--text FILE] [--only SECTION]
//     --text   to train on; without it, a text of its own
//     --only   overhead, layered, pipelines, groups, handovers, sums, waits, codes,
//              rows, offload, ministages, state or flat
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/bench/bench_report.h"
#include "tests/bench/engine_codes.h"
#include "tests/bench/engine_flat.h"
#include "tests/bench/engine_host_state.h"
#include "tests/bench/engine_layered.h"
#include "tests/bench/engine_links.h"
#include "tests/bench/engine_ministages.h"
#include "tests/bench/engine_offload.h"
#include "tests/bench/engine_overhead.h"
#include "tests/bench/engine_pipelines.h"
#include "tests/bench/engine_rows.h"
#include "tests/bench/engine_sums.h"
#include "tests/bench/engine_waits.h"

namespace motley::engine {
namespace {

struct Section {
  const char* name;
  void (*measure)(const std::string& text, bench::Report* report);
};
constexpr Section kSections[] = {
    {"overhead", MeasureOverhead}, {"layered", MeasureLayered},       {"pipelines", MeasurePipelines},
    {"groups", MeasureGroups},     {"handovers", MeasureHandOvers},   {"sums", MeasureSums},
    {"waits", MeasureWaits},       {"codes", MeasureCodes},           {"rows", MeasureRows},
    {"offload", MeasureOffload},   {"ministages", MeasureMinistages}, {"state", MeasureHostState},
    {"flat", MeasureFlat}};

void WriteText(const std::filesystem::path& file) {
  std::ofstream text(file);
  for (int i = 0; i < 4000; ++i)
    text << "line " << i * 37 % 1009 << " of a text that is the same every time, number " << i << ".\n";
}

int Run(int argc, char** argv) {
  const std::string only = bench::Report::Flag(argc, argv, "--only");
  std::string text = bench::Report::Flag(argc, argv, "--text");
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("engine_bench-" + std::to_string(getpid()));
  if (text.empty()) {
    std::filesystem::create_directories(folder);
    text = (folder / "text.txt").string();
    WriteText(text);
  }
  bench::Report report;
  for (const Section& section : kSections) {
    if (only.empty() || only == section.name) section.measure(text, &report);
  }
  std::filesystem::remove_all(folder);
  if (report.rows().empty()) {
    std::fprintf(stderr, "--only: no section '%s'\n", only.c_str());
    return 64;
  }
  return report.Finish(argc, argv);
}

}  // namespace
}  // namespace motley::engine

int main(int argc, char** argv) { return motley::engine::Run(argc, argv); }
