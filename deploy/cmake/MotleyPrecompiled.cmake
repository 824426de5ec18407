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

# With MOTLEY_UNITY the files of a folder are compiled some at a time, as one: a first build takes two fifths of the time, most of which
# is reading headers. Which files are together depends on their names alone, and a folder that has grown has its parts cut in two:
# a new file can clash with those of its part, never make two others clash.
option(MOTLEY_UNITY "Compile several files of a folder as one" OFF)
set(MOTLEY_UNITY_FILES 12)

# motley_unity(TARGET): after its sources are known.
function(motley_unity target)
  if(NOT MOTLEY_UNITY)
    return()
  endif()
  set(folders)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
    cmake_path(GET path PARENT_PATH folder)
    list(APPEND folders ${folder})
    list(APPEND files_of_${folder} ${path})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    list(LENGTH files_of_${folder} count)
    set(parts 1)
    while(count GREATER MOTLEY_UNITY_FILES)
      math(EXPR parts "${parts} * 2")
      math(EXPR count "(${count} + 1) / 2")
    endwhile()
    string(REPLACE "${CMAKE_SOURCE_DIR}/" "" name ${folder})
    string(REPLACE "/" "_" name ${name})
    foreach(file ${files_of_${folder}})
      cmake_path(GET file FILENAME file_name)
      string(MD5 digest ${file_name})
      string(SUBSTRING ${digest} 0 4 digits)
      math(EXPR part "0x${digits} % ${parts}")
      set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${name}_${part})
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
