# Headers that nearly every file reads, parsed once for each library. Nearly half of a first build is reading headers. Only of
# libraries, never Motley's own: a change of those must not compile everything again.
set(MOTLEY_PCH_BASE <algorithm> <functional> <map> <memory> <optional> <set> <string> <utility> <variant> <vector>
    <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_join.h>
    <absl/time/time.h>)
set(MOTLEY_PCH_RPC ${MOTLEY_PCH_BASE} <absl/synchronization/mutex.h> <grpcpp/grpcpp.h>)
set(MOTLEY_PCH_CLIENT ${MOTLEY_PCH_RPC} <CLI/CLI.hpp> <nlohmann/json.hpp>)
set(MOTLEY_PCH_TEST <gmock/gmock.h> <gtest/gtest.h>)

# motley_precompile(TARGET HEADER...)
function(motley_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
endfunction()

# What waits for people or for other processes need not be fast, but compiled soon. Searches, simulation and tensors stay as they are.
function(motley_compile_soon target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()
