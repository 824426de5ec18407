# Runs at installation: README and the pages of docs/, with their links as they lie then: pages in share/doc/motley, examples in
# share/motley/examples.
set(documents share/doc/motley)
set(examples share/motley/examples)
# Where commands of pages find them: a tarball is used from its own folder, wherever that is.
set(here "")
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(here /usr/)
endif()

# Installs one page as `target`, a path below the prefix; `from_documents` leads from its folder to share/doc/motley, `from_examples`
# to the examples.
function(install_page page target from_documents from_examples)
  file(READ ${MOTLEY_SOURCE_DIR}/${page} text)
  string(REGEX REPLACE "\\]\\((\\.\\./)*docs/" "](${from_documents}" text "${text}")
  string(REGEX REPLACE "\\]\\((\\.\\./)*deploy/examples/" "](${from_examples}" text "${text}")
  string(REPLACE "--cluster deploy/examples/" "--cluster ${here}${examples}/" text "${text}")
  # At once to its place, by way of no file in the build: two installations may run from one build.
  set(path $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${target})
  message(STATUS "Installing: ${path}")
  file(WRITE ${path} "${text}")
  file(CHMOD ${path} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

install_page(README.md ${documents}/README.md "" ../../motley/examples/)
file(INSTALL ${MOTLEY_SOURCE_DIR}/docs/demo.svg ${MOTLEY_SOURCE_DIR}/docs/page.png DESTINATION ${CMAKE_INSTALL_PREFIX}/${documents})
file(GLOB_RECURSE pages RELATIVE ${MOTLEY_SOURCE_DIR}/docs ${MOTLEY_SOURCE_DIR}/docs/*.md)
foreach(page ${pages})
  string(REGEX REPLACE "[^/]+/" "../" up ${page})
  string(REGEX REPLACE "[^/]+$" "" up ${up})
  install_page(docs/${page} ${documents}/${page} ${up} ${up}../../motley/examples/)
endforeach()
file(GLOB pages RELATIVE ${MOTLEY_SOURCE_DIR}/deploy/examples ${MOTLEY_SOURCE_DIR}/deploy/examples/*/README.md)
foreach(page ${pages})
  install_page(deploy/examples/${page} ${examples}/${page} ../../../doc/motley/ ../)
endforeach()
