# Runs at installation: what a rank opens on a machine with NVIDIA cards, libtorch_cuda.so, what that asks for, and kernels of our
# own, where ./run setup --gpu has fetched and compiled them. Without cards nothing opens it, and it is six times as large as all else.
if(EXISTS "${MOTLEY_KERNELS}")
  file(INSTALL ${MOTLEY_KERNELS} DESTINATION ${CMAKE_INSTALL_PREFIX}/share/motley/kernels RENAME ${MOTLEY_RANK_NAME})
endif()
file(GLOB cublas ${MOTLEY_TORCH_DIR}/nvidia/*/lib/libcublas.so.*)
if(NOT cublas)
  message(STATUS "Not installed: NVIDIA's libraries; ./run setup --gpu fetches them")
  return()
endif()
set(prefix ${CMAKE_INSTALL_PREFIX}/${MOTLEY_RANK_LIBRARIES})
# Not libtorch_cuda_linalg.so: Motley decomposes no matrix on a card, and what that asks for is not fetched.
file(GLOB torch_libraries ${MOTLEY_TORCH_DIR}/torch/lib/libtorch_cuda.so ${MOTLEY_TORCH_DIR}/torch/lib/libtorch_nvshmem.so
     ${MOTLEY_TORCH_DIR}/torch/lib/libcaffe2_nvrtc.so)
file(INSTALL ${torch_libraries} DESTINATION ${prefix}/torch/lib)
file(GLOB folders ${MOTLEY_TORCH_DIR}/nvidia/*/lib)
foreach(folder ${folders})
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${MOTLEY_TORCH_DIR} OUTPUT_VARIABLE below)
  file(INSTALL ${folder}/ DESTINATION ${prefix}/${below} FILES_MATCHING PATTERN "*.so" PATTERN "*.so.*")
endforeach()
