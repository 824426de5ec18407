// NVRTC without a compiler, opened by tests as the real one is. MOTLEY_FAKE_NVRTC: the compute capabilities that it knows, "60
// 90". Code is the architecture's name; a header that says `planted error` does not compile; one with `planted spills` makes the
// last kernel spill.
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Program {
  std::string headers, architecture, log;
  std::vector<std::string> expressions, symbols;
};

std::vector<int> Known() {
  const char* text = std::getenv("MOTLEY_FAKE_NVRTC");
  std::istringstream words(text == nullptr ? "" : text);
  std::vector<int> known;
  for (int capability = 0; words >> capability;) known.push_back(capability);
  return known;
}

constexpr int kFailed = 6;

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 12, *minor = 3;
  return 0;
}
const char* nvrtcGetErrorString(int result) { return result == kFailed ? "NVRTC_ERROR_COMPILATION" : "NVRTC_SUCCESS"; }
int nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(Known().size());
  return 0;
}
int nvrtcGetSupportedArchs(int* capabilities) {
  for (const int capability : Known()) *capabilities++ = capability;
  return 0;
}
int nvrtcCreateProgram(Program** program, const char*, const char*, int headers, const char* const* texts, const char* const*) {
  *program = new Program();
  for (int i = 0; i < headers; ++i) (*program)->headers += texts[i];
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
int nvrtcAddNameExpression(Program* program, const char* expression) {
  program->expressions.push_back(expression);
  program->symbols.push_back("_Z" + std::to_string(program->symbols.size()));
  return 0;
}
int nvrtcCompileProgram(Program* program, int, const char* const* options) {
  program->architecture = std::string(options[0]).substr(std::strlen("--gpu-architecture="));
  if (program->headers.find("planted error") != std::string::npos) {
    program->log = "gated.h(1): error: it is broken";
    return kFailed;
  }
  for (const std::string& symbol : program->symbols) {
    const bool spills = symbol == program->symbols.back() && program->headers.find("planted spills") != std::string::npos;
    program->log += "ptxas info    : Compiling entry function '" + symbol + "' for '" + program->architecture +
                    "'\nptxas info    : Function properties for " + symbol + "\n    " + (spills ? "24" : "0") +
                    " bytes stack frame, " + (spills ? "8" : "0") + " bytes spill stores, 0 bytes spill loads\n" +
                    "ptxas info    : Used 32 registers, used 0 barriers, 376 bytes cmem[0]\n";
  }
  return 0;
}
int nvrtcGetLoweredName(Program* program, const char* expression, const char** symbol) {
  for (size_t i = 0; i < program->expressions.size(); ++i) {
    if (program->expressions[i] == expression) *symbol = program->symbols[i].c_str();
  }
  return 0;
}
int nvrtcGetProgramLogSize(Program* program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}
int nvrtcGetCUBINSize(Program* program, size_t* bytes) {
  *bytes = program->architecture.size();
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* code) {
  std::memcpy(code, program->architecture.data(), program->architecture.size());
  return 0;
}
int nvrtcGetPTXSize(Program* program, size_t* bytes) { return nvrtcGetCUBINSize(program, bytes); }
int nvrtcGetPTX(Program* program, char* code) { return nvrtcGetCUBIN(program, code); }
}
