# `cmake --install BUILD --prefix PREFIX`: binaries, the part of libtorch that motley-rank needs, systemd units, configuration,
# rules, dashboards, documents.
include(GNUInstallDirs)

foreach(program motley motley-coordinator motley-worker motley-rank)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION bin)
  endif()
endforeach()

if(TARGET motley-rank)
  # libtorch_cpu.so finds the CUDA runtime at ../../nvidia/cu13/lib from itself, so the wheel's layout is kept.
  set_target_properties(motley-rank PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/motley/torch/lib")
  install(DIRECTORY ${MOTLEY_TORCH_DIR}/torch/lib/ DESTINATION lib/motley/torch/lib FILES_MATCHING
          PATTERN "libtorch_cpu.so" PATTERN "libc10.so" PATTERN "libgomp*.so*")
  install(DIRECTORY ${MOTLEY_TORCH_DIR}/nvidia/cu13/lib/ DESTINATION lib/motley/nvidia/cu13/lib FILES_MATCHING
          PATTERN "libcudart.so*" PATTERN "libcupti.so*")
endif()

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
