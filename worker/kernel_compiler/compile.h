// Compiles every kernel for every target into one file (docs/inside/kernels.md). No card, no CUDA toolkit.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/engine/kernels/kernel_file.h"
#include "worker/kernel_compiler/assembler_log.h"
#include "worker/kernel_compiler/nvrtc_library.h"

namespace motley::kernel_compiler {

struct Target {
  int capability = 0;
  bool is_ptx = false;  // for later cards, whose driver compiles it
};
// From Pascal to Blackwell: code for each runs on later cards of the same major number, and PTX on all behind it.
std::vector<Target> AllTargets();
// "60,90,120+": with a plus as PTX. INVALID_ARGUMENT: names the part that is none.
absl::StatusOr<std::vector<Target>> ParseTargets(const std::string& text);

struct Compiled {
  engine::KernelFile file;
  std::vector<std::string> left_out;  // a target, and why
  std::vector<std::string> faults;    // of what was compiled: AssemblerLog's
  std::vector<std::string> uses;      // a target, a kernel and its registers
};

// `root`: of Motley's sources. A target that this NVRTC does not know is left out. FAILED_PRECONDITION: it knows none, or the
// sources are not there. INTERNAL: they do not compile; with the compiler's words.
absl::StatusOr<Compiled> CompileKernels(const NvrtcLibrary& nvrtc, const std::string& root, const std::vector<Target>& targets);

}  // namespace motley::kernel_compiler
