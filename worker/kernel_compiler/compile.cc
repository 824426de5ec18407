#include "worker/kernel_compiler/compile.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "worker/engine/kernels/kernel_table.h"

namespace motley::kernel_compiler {
namespace {

constexpr char kFolder[] = "worker/engine/kernels";

// Name of the include, text.
using Headers = std::map<std::string, std::string>;

absl::StatusOr<Headers> HeadersBelow(const std::string& root) {
  Headers headers;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(root) / kFolder, error)) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream stream(entry.path());
    headers[absl::StrCat(kFolder, "/", entry.path().filename().string())] =
        std::string{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  if (!headers.empty()) return headers;
  return absl::FailedPreconditionError(absl::StrCat("no kernels' sources in ", root, "/", kFolder));
}

std::string Source() {
  std::set<std::string> lines;
  for (const kernels::KernelRow& row : kernels::kKernels) {
    lines.insert(absl::StrCat("#include \"", kFolder, "/", std::string(row.header), "\"\n"));
  }
  return absl::StrJoin(lines, "");
}

std::string Expression(const kernels::KernelRow& row, const kernels::KernelType& type) {
  const bool builtin = type.type == "float";
  return absl::StrCat("motley::kernels::", std::string(row.function), "<",
                      builtin ? "" : "motley::kernels::", std::string(type.type), ">");
}

// A program of NVRTC's.
class NvrtcProgram {
 public:
  NvrtcProgram(const NvrtcApi& api, const Headers& headers) : api_(api) {
    std::vector<const char*> texts, names;
    for (const auto& [name, text] : headers) {
      names.push_back(name.c_str());
      texts.push_back(text.c_str());
    }
    made_ = api_.nvrtcCreateProgram(&program_, Source().c_str(), "motley_kernels.cu", static_cast<int>(names.size()),
                                    texts.data(), names.data());
  }
  ~NvrtcProgram() {
    if (program_ != nullptr) api_.nvrtcDestroyProgram(&program_);
  }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;

  absl::Status Compile(const Target& target) {
    MOTLEY_RETURN_IF_ERROR(Said(made_, "making a program"));
    for (const kernels::KernelRow& row : kernels::kKernels) {
      for (const kernels::KernelType& type : kernels::kKernelTypes) {
        MOTLEY_RETURN_IF_ERROR(Said(api_.nvrtcAddNameExpression(program_, Expression(row, type).c_str()), "naming a kernel"));
      }
    }
    const std::string architecture = absl::StrCat("--gpu-architecture=", target.is_ptx ? "compute_" : "sm_", target.capability);
    std::vector<const char*> options = {architecture.c_str(), "--std=c++17"};
    if (!target.is_ptx) options.push_back("--ptxas-options=-v");
    const nvrtcResult result = api_.nvrtcCompileProgram(program_, static_cast<int>(options.size()), options.data());
    size_t bytes = 0;
    MOTLEY_RETURN_IF_ERROR(Said(api_.nvrtcGetProgramLogSize(program_, &bytes), "reading the log"));
    log_.resize(bytes);
    MOTLEY_RETURN_IF_ERROR(Said(api_.nvrtcGetProgramLog(program_, log_.data()), "reading the log"));
    while (!log_.empty() && log_.back() == '\0') log_.pop_back();
    if (result == NVRTC_SUCCESS) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("kernels do not compile (", api_.nvrtcGetErrorString(result), "): ", log_));
  }
  absl::StatusOr<std::string> Code(bool is_ptx) {
    size_t bytes = 0;
    MOTLEY_RETURN_IF_ERROR(
        Said(is_ptx ? api_.nvrtcGetPTXSize(program_, &bytes) : api_.nvrtcGetCUBINSize(program_, &bytes), "reading code"));
    std::string code(bytes, '\0');
    MOTLEY_RETURN_IF_ERROR(
        Said(is_ptx ? api_.nvrtcGetPTX(program_, code.data()) : api_.nvrtcGetCUBIN(program_, code.data()), "reading code"));
    return code;
  }
  absl::StatusOr<std::vector<engine::CompiledKernel>> Kernels() {
    std::vector<engine::CompiledKernel> made;
    for (const kernels::KernelRow& row : kernels::kKernels) {
      for (const kernels::KernelType& type : kernels::kKernelTypes) {
        const char* symbol = nullptr;
        MOTLEY_RETURN_IF_ERROR(
            Said(api_.nvrtcGetLoweredName(program_, Expression(row, type).c_str(), &symbol), "a kernel's symbol"));
        made.push_back({std::string(row.name), std::string(type.name), symbol, row.argument_bytes});
      }
    }
    return made;
  }
  const std::string& log() const { return log_; }

 private:
  absl::Status Said(nvrtcResult result, const char* what) const {
    if (result == NVRTC_SUCCESS) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(what, ": NVRTC says '", api_.nvrtcGetErrorString(result), "'"));
  }

  const NvrtcApi& api_;
  nvrtcProgram program_ = nullptr;
  nvrtcResult made_ = NVRTC_SUCCESS;
  std::string log_;
};

absl::Status CompileFor(const NvrtcLibrary& nvrtc, const Headers& headers, const Target& target, Compiled& compiled) {
  const std::string name = engine::ImageName({.capability = target.capability, .is_ptx = target.is_ptx});
  NvrtcProgram program(nvrtc.api, headers);
  if (const absl::Status status = program.Compile(target); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
  }
  MOTLEY_ASSIGN_OR_RETURN(std::string code, program.Code(target.is_ptx));
  MOTLEY_ASSIGN_OR_RETURN(compiled.file.kernels, program.Kernels());
  compiled.file.images.push_back({target.capability, target.is_ptx, std::move(code)});
  if (target.is_ptx) return absl::OkStatus();  // assembled by a driver
  const std::vector<KernelUse> uses = UsesIn(program.log());
  if (uses.size() != compiled.file.kernels.size()) {
    compiled.faults.push_back(
        absl::StrCat(name, ": the log is of ", uses.size(), " kernels and not of ", compiled.file.kernels.size()));
  }
  for (const KernelUse& use : uses) compiled.uses.push_back(absl::StrCat(name, ": ", use.symbol, " ", use.registers));
  for (const std::string& fault : Faults(uses)) compiled.faults.push_back(absl::StrCat(name, ": ", fault));
  return absl::OkStatus();
}

}  // namespace

std::vector<Target> AllTargets() { return {{60}, {70}, {75}, {80}, {86}, {90}, {100}, {120}, {120, /*is_ptx=*/true}}; }

absl::StatusOr<std::vector<Target>> ParseTargets(const std::string& text) {
  std::vector<Target> targets;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    Target target;
    absl::string_view digits = part;
    target.is_ptx = absl::ConsumeSuffix(&digits, "+");
    if (!absl::SimpleAtoi(digits, &target.capability) || target.capability < 10) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", part, "' is no target; 90 is compute capability 9.0, ", "120+ is PTX for 12.0 and later"));
    }
    targets.push_back(target);
  }
  return targets;
}

absl::StatusOr<Compiled> CompileKernels(const NvrtcLibrary& nvrtc, const std::string& root, const std::vector<Target>& targets) {
  MOTLEY_ASSIGN_OR_RETURN(const Headers headers, HeadersBelow(root));
  Compiled compiled;
  compiled.file.compiler = nvrtc.name;
  for (const Target& target : targets) {
    if (std::find(nvrtc.capabilities.begin(), nvrtc.capabilities.end(), target.capability) == nvrtc.capabilities.end()) {
      const std::string name = engine::ImageName({.capability = target.capability, .is_ptx = target.is_ptx});
      compiled.left_out.push_back(absl::StrCat(name, ": ", nvrtc.name, " does not know it"));
      continue;
    }
    MOTLEY_RETURN_IF_ERROR(CompileFor(nvrtc, headers, target, compiled));
  }
  if (!compiled.file.images.empty()) return compiled;
  return absl::FailedPreconditionError(absl::StrCat("nothing to compile for: ", absl::StrJoin(compiled.left_out, "; ")));
}

}  // namespace motley::kernel_compiler
