# `./run package`: four Debian packages of the components of MotleyInstall.cmake. Depends and the compression are given to cpack by
# ./run package.
set(MOTLEY_MAINTAINER "The Motley authors <motley@motley-project.invalid>" CACHE STRING "Maintainer of the Debian packages")
string(REGEX REPLACE "\\.[0-9]+$" "" libtorch_series "${MOTLEY_TORCH_VERSION}")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME motley)
set(CPACK_PACKAGE_CONTACT "${MOTLEY_MAINTAINER}")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL coordinator worker client libtorch)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)
# Man page, changelog and copyright as Debian wants them.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/deploy/cmake/finish_packages.cmake)
set(CPACK_MOTLEY_SOURCE_DIR ${CMAKE_SOURCE_DIR})
set(CPACK_MOTLEY_TORCH_DIR ${MOTLEY_TORCH_DIR})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_COORDINATOR_PACKAGE_NAME motley-coordinator)
set(CPACK_DEBIAN_COORDINATOR_PACKAGE_RECOMMENDS motley-client)
set(CPACK_COMPONENT_COORDINATOR_DESCRIPTION "Motley's coordinator: who trains what, by which plan
It knows the machines and their measured speed, keeps the queue of jobs,
plans how one transformer is trained on unlike GPUs, and plans again when
machines come, go or slow down. One for each cluster.")
set(CPACK_DEBIAN_WORKER_PACKAGE_NAME motley-worker)
set(CPACK_DEBIAN_WORKER_PACKAGE_SUGGESTS motley-client)
set(CPACK_COMPONENT_WORKER_DESCRIPTION "Motley's worker: offers a machine's devices for training
It joins a cluster's coordinator with a token, measures the machine's GPUs
or CPU, and runs the ranks that train. One for each machine.")
set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME motley-client)
set(CPACK_COMPONENT_CLIENT_DESCRIPTION "Motley's command line, documents, dashboards and examples
Submits and watches jobs, and plans without a cluster: how would this
transformer be trained on those GPUs, how fast, and is it worth it?")
set(CPACK_DEBIAN_LIBTORCH_PACKAGE_NAME motley-libtorch-${libtorch_series})
set(CPACK_COMPONENT_LIBTORCH_DESCRIPTION "libtorch ${MOTLEY_TORCH_VERSION} for Motley's ranks
The part of PyTorch's wheel that ranks need without an NVIDIA card, in a
folder of its own. It changes when Motley takes another PyTorch.")
set(CPACK_DEBIAN_LIBTORCH_PACKAGE_DEPENDS "libc6 (>= 2.28), libgcc-s1, libstdc++6")

foreach(daemon coordinator worker)
  string(TOUPPER ${daemon} component)
  set(scripts ${CMAKE_BINARY_DIR}/packages/${daemon})
  set(control)
  foreach(script postinst prerm postrm conffiles)
    configure_file(deploy/debian/${script}.in ${scripts}/${script} @ONLY)
    list(APPEND control ${scripts}/${script})
  endforeach()
  set(CPACK_DEBIAN_${component}_PACKAGE_CONTROL_EXTRA "${control}")
endforeach()
include(CPack)
