# `cmake --install BUILD --prefix PREFIX`: binaries, the part of libtorch that motley-rank needs, systemd units, configuration,
# rules, dashboards, documents. Each part is one of the components coordinator, worker, client, libtorch, which are packages
# (MotleyPackages.cmake), and `cards`, which is none: NVIDIA's libraries, where ./run setup --gpu has fetched them.
include(GNUInstallDirs)

# Two versions of libtorch lie beside each other: the one of motley-rank in lib/motley, that of motley-rank-VERSION under its name.
if(TARGET motley-rank)
  set(rank_libraries lib/${MOTLEY_RANK_NAME})
  if(MOTLEY_RANK_NAME STREQUAL "motley-rank")
    set(rank_libraries lib/motley)
  endif()
  install(TARGETS motley-rank RUNTIME DESTINATION bin COMPONENT worker)
  # libtorch_cpu.so finds the CUDA runtime at ../../nvidia/ from itself, so the wheel's layout is kept.
  set(rank_rpath "$ORIGIN/../${rank_libraries}/torch/lib")
  install(DIRECTORY ${MOTLEY_TORCH_DIR}/torch/lib/ DESTINATION ${rank_libraries}/torch/lib COMPONENT libtorch FILES_MATCHING
          PATTERN "libtorch_cpu.so" PATTERN "libc10.so" PATTERN "libc10_cuda.so" PATTERN "libgomp*.so*"
          PATTERN "libshm" EXCLUDE PATTERN "libshm_windows" EXCLUDE)
  foreach(folder ${MOTLEY_CUDA_LIBRARY_DIRS})
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${MOTLEY_TORCH_DIR} OUTPUT_VARIABLE below)
    list(APPEND rank_rpath "$ORIGIN/../${rank_libraries}/${below}")
    install(DIRECTORY ${folder}/ DESTINATION ${rank_libraries}/${below} COMPONENT libtorch FILES_MATCHING
            PATTERN "libcudart.so*" PATTERN "libcupti.so*" PATTERN "__pycache__" EXCLUDE)
  endforeach()
  set_target_properties(motley-rank PROPERTIES INSTALL_RPATH "${rank_rpath}")
  install(CODE "set(MOTLEY_TORCH_DIR \"${MOTLEY_TORCH_DIR}\")\nset(MOTLEY_RANK_LIBRARIES \"${rank_libraries}\")
                set(MOTLEY_KERNELS \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/motley-kernels\")
                set(MOTLEY_RANK_NAME \"${MOTLEY_RANK_NAME}\")" COMPONENT cards)
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_cards.cmake COMPONENT cards)
  if(NOT MOTLEY_RANK_NAME STREQUAL "motley-rank")
    return()   # everything else is installed from the first build
  endif()
endif()

foreach(program motley:client motley-coordinator:coordinator motley-worker:worker)
  string(REPLACE ":" ";" program "${program}")
  list(GET program 0 target)
  list(GET program 1 component)
  if(TARGET ${target})
    install(TARGETS ${target} RUNTIME DESTINATION bin COMPONENT ${component})
  endif()
endforeach()

# Man page and completion say what the program itself knows of its commands.
if(TARGET motley)
  install(CODE "set(MOTLEY_PROGRAM \"$<TARGET_FILE:motley>\")" COMPONENT client)
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_command_line.cmake COMPONENT client)
endif()

# Units and configuration depend on the prefix that is given at installation.
foreach(daemon coordinator worker)
  install(CODE "set(MOTLEY_SOURCE_DIR \"${CMAKE_SOURCE_DIR}\")\nset(MOTLEY_DAEMON ${daemon})" COMPONENT ${daemon})
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_daemon.cmake COMPONENT ${daemon})
  # As it was installed: `motley-worker --join` replaces what nobody has changed.
  install(FILES deploy/config/${daemon}.toml DESTINATION share/motley/config COMPONENT ${daemon})
  install(FILES deploy/systemd/motley-${daemon}.sysusers DESTINATION lib/sysusers.d RENAME motley-${daemon}.conf
          COMPONENT ${daemon})
endforeach()

install(DIRECTORY deploy/prometheus deploy/grafana deploy/examples proto DESTINATION share/motley COMPONENT client
        PATTERN "CMakeLists.txt" EXCLUDE PATTERN "slurm" EXCLUDE PATTERN "README.md" EXCLUDE)
install(PROGRAMS deploy/examples/slurm/node.sh deploy/examples/slurm/workers.sbatch DESTINATION share/motley/examples/slurm
        COMPONENT client)
# What `motley data` starts; it finds it there from its own place.
install(DIRECTORY deploy/data DESTINATION share/motley COMPONENT client PATTERN "__pycache__" EXCLUDE)
install(CODE "set(MOTLEY_SOURCE_DIR \"${CMAKE_SOURCE_DIR}\")" COMPONENT client)
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_documents.cmake COMPONENT client)
install(FILES LICENSE NOTICE DESTINATION share/doc/motley COMPONENT client)
