# Runs at installation. A prefix of /usr has its configuration in /etc, any other prefix in its own etc.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(SYSCONFDIR /etc)
else()
  set(SYSCONFDIR ${CMAKE_INSTALL_PREFIX}/etc)
endif()
set(BINDIR ${CMAKE_INSTALL_PREFIX}/bin)
set(DOCDIR ${CMAKE_INSTALL_PREFIX}/share/doc/motley)

foreach(unit motley-coordinator motley-worker)
  configure_file(${MOTLEY_SOURCE_DIR}/deploy/systemd/${unit}.service.in ${MOTLEY_BINARY_DIR}/systemd/${unit}.service @ONLY)
  file(INSTALL ${MOTLEY_BINARY_DIR}/systemd/${unit}.service DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/systemd/system)
endforeach()

# A configuration that is there already is the administrator's.
foreach(daemon coordinator worker)
  if(NOT EXISTS $ENV{DESTDIR}${SYSCONFDIR}/motley/${daemon}.toml)
    file(INSTALL ${MOTLEY_SOURCE_DIR}/deploy/config/${daemon}.toml DESTINATION ${SYSCONFDIR}/motley)
  endif()
endforeach()
