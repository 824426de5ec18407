#include "coordinator/client/data_python.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/sha256.h"
#include "common/base/written_path.h"

namespace motley::client {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 16;  // of the list's digest, in the name of the folder

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string CacheFolder() {
  if (const std::string cache = Variable("MOTLEY_CACHE"); !cache.empty()) return cache;
  if (const std::string cache = Variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/motley";
  return HomeFolder() + "/.cache/motley";
}

bool IsThere(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

}  // namespace

DataPlaces FindDataPlaces() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return {CacheFolder(), Variable("MOTLEY_DATA_PYTHON"), self.parent_path().string()};
}

absl::StatusOr<std::string> DataProgram(const DataPlaces& places) {
  // As installed; and of a build in the sources, build/NAME/bin.
  for (const char* place : {"../share/motley/data", "../../../deploy/data"}) {
    const std::string folder = (fs::path(places.beside) / place).lexically_normal().string();
    if (IsThere(folder + "/__main__.py")) return folder;
  }
  return absl::NotFoundError(absl::StrCat("the program that makes tokens is not where it is installed, ",
                                          (fs::path(places.beside) / "../share/motley/data").lexically_normal().string(),
                                          "; install motley again"));
}

absl::StatusOr<std::string> DataVenv(const DataPlaces& places, const std::string& program) {
  const std::string path = program + "/requirements.lock";
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, " cannot be read; install motley again"));
  const std::string list{std::istreambuf_iterator<char>(file), {}};
  Sha256 digest;
  digest.Update(list.data(), list.size());
  return absl::StrCat(places.cache, "/data-", digest.Hex().substr(0, kDigits));
}

absl::StatusOr<std::string> DataPython(const DataPlaces& places, const std::string& program, const std::string& asked) {
  if (!asked.empty()) return asked;
  if (!places.python.empty()) return places.python;
  const absl::StatusOr<std::string> venv = DataVenv(places, program);
  if (!venv.ok()) return venv.status();
  const std::string python = *venv + "/bin/python";
  if (IsThere(python)) return python;
  return absl::NotFoundError(
      "there is no Python to make tokens with: 'motley data setup' makes one once, of 200 MB; or, where a Python has "
      "transformers, name it by --python PYTHON or the environment variable MOTLEY_DATA_PYTHON");
}

}  // namespace motley::client
