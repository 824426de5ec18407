// NVIDIA's compiler as a library, opened at run time. Names and values are those of nvrtc.h of CUDA 12.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace motley::kernel_compiler {

struct _nvrtcProgram;
using nvrtcProgram = _nvrtcProgram*;
enum nvrtcResult : int { NVRTC_SUCCESS = 0 };

struct NvrtcApi {
  nvrtcResult (*nvrtcVersion)(int* major, int* minor) = nullptr;
  const char* (*nvrtcGetErrorString)(nvrtcResult result) = nullptr;
  nvrtcResult (*nvrtcGetNumSupportedArchs)(int* count) = nullptr;
  nvrtcResult (*nvrtcGetSupportedArchs)(int* capabilities) = nullptr;
  nvrtcResult (*nvrtcCreateProgram)(nvrtcProgram* program, const char* source, const char* name, int headers,
                                    const char* const* texts, const char* const* names) = nullptr;
  nvrtcResult (*nvrtcDestroyProgram)(nvrtcProgram* program) = nullptr;
  nvrtcResult (*nvrtcAddNameExpression)(nvrtcProgram program, const char* expression) = nullptr;
  nvrtcResult (*nvrtcCompileProgram)(nvrtcProgram program, int options, const char* const* texts) = nullptr;
  nvrtcResult (*nvrtcGetLoweredName)(nvrtcProgram program, const char* expression, const char** symbol) = nullptr;
  nvrtcResult (*nvrtcGetProgramLogSize)(nvrtcProgram program, size_t* bytes) = nullptr;
  nvrtcResult (*nvrtcGetProgramLog)(nvrtcProgram program, char* log) = nullptr;
  nvrtcResult (*nvrtcGetCUBINSize)(nvrtcProgram program, size_t* bytes) = nullptr;
  nvrtcResult (*nvrtcGetCUBIN)(nvrtcProgram program, char* code) = nullptr;
  nvrtcResult (*nvrtcGetPTXSize)(nvrtcProgram program, size_t* bytes) = nullptr;
  nvrtcResult (*nvrtcGetPTX)(nvrtcProgram program, char* code) = nullptr;
};

struct NvrtcLibrary {
  NvrtcApi api;
  std::string name;               // "NVRTC 12.9"
  std::vector<int> capabilities;  // that it compiles for: 90 is 9.0
};

// `path`: of libnvrtc.so.12 or .13. It stays open. FAILED_PRECONDITION: it is not there, or lacks a function (before 11.2); says
// the remedy.
absl::StatusOr<NvrtcLibrary> OpenNvrtc(const std::string& path);

}  // namespace motley::kernel_compiler
