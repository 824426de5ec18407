# Runs at installation, once for each daemon (MOTLEY_DAEMON): its unit and its configuration. A prefix of /usr has its
# configuration in /etc, any other prefix in its own etc.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(SYSCONFDIR /etc)
else()
  set(SYSCONFDIR ${CMAKE_INSTALL_PREFIX}/etc)
endif()
set(BINDIR ${CMAKE_INSTALL_PREFIX}/bin)
set(DOCDIR ${CMAKE_INSTALL_PREFIX}/share/doc/motley)

set(unit motley-${MOTLEY_DAEMON}.service)
set(path $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/systemd/system/${unit})
# At once to its place, by way of no file in the build: two installations of two prefixes may run from one build.
message(STATUS "Installing: ${path}")
configure_file(${MOTLEY_SOURCE_DIR}/deploy/systemd/${unit}.in ${path} @ONLY FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)

# A configuration that is there already is the administrator's.
if(NOT EXISTS $ENV{DESTDIR}${SYSCONFDIR}/motley/${MOTLEY_DAEMON}.toml)
  file(INSTALL ${MOTLEY_SOURCE_DIR}/deploy/config/${MOTLEY_DAEMON}.toml DESTINATION ${SYSCONFDIR}/motley)
endif()
