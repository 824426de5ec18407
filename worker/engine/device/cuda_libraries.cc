#include "worker/engine/device/cuda_libraries.h"

#include <dlfcn.h>
#include <torch/version.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/torch_pch.h"

namespace motley::engine {
namespace {

// Where the library that holds ATen lies.
absl::StatusOr<std::string> TorchFolder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&at::get_num_threads), &info) == 0 || info.dli_fname == nullptr) {
    return absl::InternalError("where libtorch_cpu.so lies cannot be found out");
  }
  return std::filesystem::path(info.dli_fname).parent_path().string();
}

}  // namespace

void PrepareTorchCuda() {
  // The second name is that of libtorch 2.9 and later, which reads both and warns of the first.
  constexpr const char* kNames[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
  const bool said = std::getenv(kNames[0]) != nullptr || std::getenv(kNames[1]) != nullptr;
  if (!said) setenv(kNames[TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9], "expandable_segments:True", /*overwrite=*/0);
  at::globalContext().setAllowFP16ReductionCuBLAS(false);
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
}

absl::Status OpenTorchCudaIn(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/libtorch_cuda.so");
  // Lazily: what no kernel of ours calls need not be there. Globally: its own parts look for each other.
  if (dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL) != nullptr) return absl::OkStatus();
  const char* const why = dlerror();
  return absl::FailedPreconditionError(
      absl::StrCat("PyTorch's library for NVIDIA cards cannot be opened: ", why != nullptr ? why : path,
                   "; `./run setup --gpu` fetches what a card needs"));
}

absl::Status OpenTorchCuda() {
  const absl::StatusOr<std::string> folder = TorchFolder();
  return folder.ok() ? OpenTorchCudaIn(*folder) : folder.status();
}

absl::StatusOr<NcclLibrary> OpenTorchsNccl() {
  if (const char* const wanted = std::getenv("MOTLEY_NCCL_LIBRARY"); wanted != nullptr && *wanted != '\0')
    return OpenNccl(wanted);
  MOTLEY_ASSIGN_OR_RETURN(const std::string folder, TorchFolder());
  const std::filesystem::path beside = std::filesystem::path(folder) / "../../nvidia/nccl/lib" / kNcclName;
  return OpenNccl(std::filesystem::exists(beside) ? beside.string() : kNcclName);
}

}  // namespace motley::engine
