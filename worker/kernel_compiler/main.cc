// compile_kernels: makes the file of kernels that lies beside the ranks. docs/inside/kernels.md
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "worker/kernel_compiler/compile.h"

namespace {

using namespace motley::kernel_compiler;

struct Options {
  std::string nvrtc, sources = ".", out, targets;
  bool strict = false, registers = false;
};

int Refuse(const absl::Status& status) {
  std::cerr << "compile_kernels: " << status.message() << "\n";
  return 1;
}

// Beside it first: a rank that starts meanwhile reads the old one or the new one.
bool Write(const std::string& path, const std::string& bytes) {
  const std::string partial = path + ".partial";
  std::ofstream stream(partial, std::ios::binary | std::ios::trunc);
  stream << bytes;
  stream.close();
  std::error_code error;
  if (stream) std::filesystem::rename(partial, path, error);
  return stream && !error;
}

int Run(const Options& options) {
  const auto nvrtc = OpenNvrtc(options.nvrtc);
  if (!nvrtc.ok()) return Refuse(nvrtc.status());
  const auto targets = options.targets.empty() ? AllTargets() : ParseTargets(options.targets);
  if (!targets.ok()) return Refuse(targets.status());
  auto compiled = CompileKernels(*nvrtc, options.sources, *targets);
  if (!compiled.ok()) return Refuse(compiled.status());
  const std::string bytes = motley::engine::WrittenKernelFile(compiled->file);
  if (!Write(options.out, bytes)) return Refuse(absl::InternalError("cannot write " + options.out));
  for (const auto& image : compiled->file.images) {
    std::cout << motley::engine::ImageName(image) << ": " << image.code.size() << " bytes\n";
  }
  for (const std::string& use : compiled->uses) {
    if (options.registers) std::cout << "registers: " << use << "\n";
  }
  for (const std::string& target : compiled->left_out) std::cout << "left out: " << target << "\n";
  for (const std::string& fault : compiled->faults) std::cout << "fault: " << fault << "\n";
  std::cout << options.out << ": " << compiled->file.kernels.size() << " kernels by " << compiled->file.compiler << ", "
            << bytes.size() << " bytes, digest " << motley::engine::ShortDigest(compiled->file) << std::endl;
  return options.strict && !(compiled->faults.empty() && compiled->left_out.empty()) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compiles the kernels of cards by NVRTC, without a card.");
  Options options;
  app.add_option("--nvrtc", options.nvrtc, "libnvrtc.so.12 or .13")->required();
  app.add_option("--sources", options.sources, "Motley's sources");
  app.add_option("--out", options.out, "The file to write")->required();
  app.add_option("--targets", options.targets, "Compute capabilities, 90,120+ (with a plus: PTX for later cards); all");
  app.add_flag("--strict", options.strict, "Fail where a target is left out, or a kernel spills registers or has a stack");
  app.add_flag("--registers", options.registers,
               "Say how many registers a thread of each kernel has: what bounds blocks side by side");
  CLI11_PARSE(app, argc, argv);
  return Run(options);
}
