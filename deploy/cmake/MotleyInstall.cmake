# `cmake --install BUILD --prefix PREFIX`: binaries, the part of libtorch that motley-rank needs, systemd units, configuration,
# rules, dashboards, documents.
include(GNUInstallDirs)

# Two versions of libtorch lie beside each other: the one of motley-rank in lib/motley, that of motley-rank-VERSION under its name.
if(TARGET motley-rank)
  set(rank_libraries lib/${MOTLEY_RANK_NAME})
  if(MOTLEY_RANK_NAME STREQUAL "motley-rank")
    set(rank_libraries lib/motley)
  endif()
  install(TARGETS motley-rank RUNTIME DESTINATION bin)
  # libtorch_cpu.so finds the CUDA runtime at ../../nvidia/ from itself, so the wheel's layout is kept.
  set(rank_rpath "$ORIGIN/../${rank_libraries}/torch/lib")
  install(DIRECTORY ${MOTLEY_TORCH_DIR}/torch/lib/ DESTINATION ${rank_libraries}/torch/lib FILES_MATCHING
          PATTERN "libtorch_cpu.so" PATTERN "libc10.so" PATTERN "libc10_cuda.so" PATTERN "libgomp*.so*")
  foreach(folder ${MOTLEY_CUDA_LIBRARY_DIRS})
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${MOTLEY_TORCH_DIR} OUTPUT_VARIABLE below)
    list(APPEND rank_rpath "$ORIGIN/../${rank_libraries}/${below}")
    install(DIRECTORY ${folder}/ DESTINATION ${rank_libraries}/${below} FILES_MATCHING
            PATTERN "libcudart.so*" PATTERN "libcupti.so*" PATTERN "__pycache__" EXCLUDE)
  endforeach()
  set_target_properties(motley-rank PROPERTIES INSTALL_RPATH "${rank_rpath}")
  if(NOT MOTLEY_RANK_NAME STREQUAL "motley-rank")
    return()   # everything else is installed from the first build
  endif()
endif()

foreach(program motley motley-coordinator motley-worker)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION bin)
  endif()
endforeach()

# Man page and completion say what the program itself knows of its commands.
if(TARGET motley)
  install(CODE "set(MOTLEY_PROGRAM \"$<TARGET_FILE:motley>\")")
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_command_line.cmake)
endif()

# Units and configuration depend on the prefix that is given at installation.
install(CODE "set(MOTLEY_SOURCE_DIR \"${CMAKE_SOURCE_DIR}\")\nset(MOTLEY_BINARY_DIR \"${CMAKE_BINARY_DIR}\")")
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_units.cmake)

install(FILES deploy/systemd/motley.sysusers DESTINATION lib/sysusers.d RENAME motley.conf)
install(DIRECTORY deploy/prometheus deploy/grafana deploy/examples DESTINATION share/motley)
install(DIRECTORY docs/ DESTINATION share/doc/motley FILES_MATCHING PATTERN "*.md")
install(FILES LICENSE NOTICE DESTINATION share/doc/motley)
