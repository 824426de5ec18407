# Writes what `motley man` and `motley completion SHELL` print to where man and the shells look for it.
set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share")

function(motley_write path)
  execute_process(COMMAND ${MOTLEY_PROGRAM} ${ARGN} OUTPUT_VARIABLE text RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "motley ${ARGN}: status ${status}")
  endif()
  file(WRITE "${prefix}/${path}" "${text}")
  message(STATUS "Installing: ${prefix}/${path}")
endfunction()

motley_write(man/man1/motley.1 man)
motley_write(bash-completion/completions/motley completion bash)
motley_write(zsh/site-functions/_motley completion zsh)
motley_write(fish/vendor_completions.d/motley.fish completion fish)
