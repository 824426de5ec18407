# Everything Motley takes from outside, found once and given one name each.
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)          # CMake's own module: Debian ships no config file for it
find_package(OpenSSL REQUIRED)           # SHA-256; gRPC needs it anyway
find_package(gRPC CONFIG REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(tomlplusplus CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(PkgConfig REQUIRED)
find_path(METIS_INCLUDE_DIR metis.h REQUIRED)   # no config file, no pkg-config file in Debian
find_library(METIS_LIBRARY metis REQUIRED)
add_library(motley_metis INTERFACE)
target_include_directories(motley_metis SYSTEM INTERFACE ${METIS_INCLUDE_DIR})
target_link_libraries(motley_metis INTERFACE ${METIS_LIBRARY})
# The allocator of programs that plan: a search makes and drops plans by the hundred thousand and takes a sixth less time with it.
# Linked before everything else. Sanitizers bring their own.
add_library(motley_malloc INTERFACE)
if(NOT MOTLEY_SANITIZE)
  find_package(mimalloc CONFIG REQUIRED)
  target_link_libraries(motley_malloc INTERFACE mimalloc)
endif()
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)

set(MOTLEY_TORCH_VERSION "none")
if(MOTLEY_BUILD_ENGINE)
  if(NOT EXISTS "${MOTLEY_TORCH_DIR}/torch/lib/libtorch_cpu.so")
    message(FATAL_ERROR "MOTLEY_TORCH_DIR='${MOTLEY_TORCH_DIR}' holds no torch wheel. `./run setup` fetches it; "
                        "or configure with -DMOTLEY_BUILD_ENGINE=OFF to build everything but motley-rank.")
  endif()
  file(STRINGS "${MOTLEY_TORCH_DIR}/torch/version.py" MOTLEY_TORCH_VERSION REGEX "^__version__ = ")
  string(REGEX REPLACE "^__version__ = '([^'+]*).*" "\\1" MOTLEY_TORCH_VERSION "${MOTLEY_TORCH_VERSION}")
  # The packages of CUDA 13 have one folder for all that they bring, those of CUDA 12 one each.
  file(GLOB MOTLEY_CUDA_LIBRARY_DIRS ${MOTLEY_TORCH_DIR}/nvidia/*/lib)
  list(JOIN MOTLEY_CUDA_LIBRARY_DIRS ":" cuda_library_path)
  # Own imported target: find_package(Torch) wants a CUDA toolkit.
  add_library(motley_torch INTERFACE)
  target_include_directories(motley_torch SYSTEM INTERFACE
    ${MOTLEY_TORCH_DIR}/torch/include ${MOTLEY_TORCH_DIR}/torch/include/torch/csrc/api/include)
  # No -rpath: CMake writes one of its own for the libraries' folders, and takes it out when the program is installed.
  target_link_options(motley_torch INTERFACE "LINKER:-rpath-link,${cuda_library_path}")
  target_link_libraries(motley_torch INTERFACE
    -Wl,--no-as-needed ${MOTLEY_TORCH_DIR}/torch/lib/libtorch_cpu.so ${MOTLEY_TORCH_DIR}/torch/lib/libc10.so -Wl,--as-needed)
endif()
if(MOTLEY_BUILD_ENGINE)
  # CUDA's host side: streams, events and PyTorch's allocator. It loads where there is no driver; libtorch_cuda is opened at run
  # time, when a card is assigned.
  file(GLOB cuda_headers ${MOTLEY_CUDA_DIR}/nvidia/*/include/crt/host_config.h)
  if(NOT cuda_headers)
    message(FATAL_ERROR "MOTLEY_CUDA_DIR='${MOTLEY_CUDA_DIR}' holds no CUDA headers. `./run setup` fetches them.")
  endif()
  file(GLOB cuda_include_dirs ${MOTLEY_TORCH_DIR}/nvidia/*/include ${MOTLEY_CUDA_DIR}/nvidia/*/include)
  file(GLOB cuda_runtime ${MOTLEY_TORCH_DIR}/nvidia/*/lib/libcudart.so.*)
  add_library(motley_cuda INTERFACE)
  target_include_directories(motley_cuda SYSTEM INTERFACE ${cuda_include_dirs})
  target_link_libraries(motley_cuda INTERFACE motley_torch ${MOTLEY_TORCH_DIR}/torch/lib/libc10_cuda.so ${cuda_runtime})
endif()
if(MOTLEY_BUILD_TESTS)
  find_package(GTest CONFIG REQUIRED)
  find_package(benchmark CONFIG)
endif()
