#include "worker/daemon/nvml_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"

namespace motley::worker {
namespace {

constexpr char kLibrary[] = "libnvidia-ml.so.1";

std::string LibraryName() {
  const char* name = std::getenv("MOTLEY_NVML_LIBRARY");
  return name != nullptr && *name != '\0' ? name : kLibrary;
}

std::string LastError() {
  const char* error = dlerror();
  return error == nullptr ? "no reason given" : CleanLine(error);
}

}  // namespace

absl::StatusOr<std::unique_ptr<NvmlLibrary>> NvmlLibrary::Open() {
  const std::string name = LibraryName();
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::NotFoundError(absl::StrCat("NVIDIA's management library cannot be opened (", LastError(),
                                            "): it comes with NVIDIA's driver; in a container it must be passed in"));
  }
  auto library = std::unique_ptr<NvmlLibrary>(new NvmlLibrary(handle));
  nvml::Functions& f = library->functions_;
  const char* missing = nullptr;
#define MOTLEY_NVML_RESOLVE(symbol, member, type, required)                \
  f.member = reinterpret_cast<decltype(f.member)>(dlsym(handle, #symbol)); \
  if (f.member == nullptr && (required)) missing = #symbol;
  MOTLEY_NVML_FUNCTIONS(MOTLEY_NVML_RESOLVE)
#undef MOTLEY_NVML_RESOLVE
  if (missing != nullptr) {
    return absl::UnavailableError(absl::StrCat(name, " has no ", missing, ": its driver is too old; install a newer one"));
  }
  const nvml::Return code = f.Init();
  if (code == nvml::kSuccess) {
    library->initialised_ = true;
    return library;
  }
  if (code == nvml::kDriverNotLoaded) {
    return absl::UnavailableError("NVIDIA's kernel driver is not loaded: install it or load it (modprobe nvidia)");
  }
  if (code == nvml::kLibRmVersionMismatch) {
    return absl::UnavailableError(
        absl::StrCat("the loaded kernel driver and ", name,
                     " are of different versions: the driver was updated; reboot, or unload and load its modules"));
  }
  return absl::UnavailableError(absl::StrCat(name, " cannot be initialised: ", library->Words(code)));
}

NvmlLibrary::~NvmlLibrary() {
  if (initialised_) functions_.Shutdown();
  dlclose(handle_);
}

std::string NvmlLibrary::Words(nvml::Return code) const {
  if (code == nvml::kGpuIsLost) return "GPU is lost (fell off the bus)";
  if (code == nvml::kResetRequired) return "GPU must be reset before it works again";
  const char* text = functions_.ErrorString(code);
  return absl::StrCat(text == nullptr ? "unknown error" : CleanLine(text), " (NVML ", code, ")");
}

}  // namespace motley::worker
