# Cluster files that are kept in the binary: ClusterPresets() of planner/cluster/cluster_file.h. The first line of such a file is a
# comment, `# WHAT THE CLUSTER IS`, which lists show; what follows is the preset, as `motley clusters NAME` prints it.

include(${CMAKE_CURRENT_LIST_DIR}/MotleyWriteChanged.cmake)

# motley_embed_clusters(FOLDER OUT NAME...): writes the files FOLDER/NAME.toml, in this order, as the C++ file OUT, and touches it only
# when that changes. A file that cannot be embedded, or is not named, stops CMake.
function(motley_embed_clusters folder out)
  string(CONCAT code "// Written by CMake: the files of planner/cluster/presets.\n"
                     "#include \"planner/cluster/cluster_file.h\"\n\n"
                     "namespace motley::planner {\n\n"
                     "const std::vector<ClusterPreset>& ClusterPresets() {\n"
                     "  static const auto* const all = new std::vector<ClusterPreset>{\n")
  set(paths)
  foreach(name ${ARGN})
    set(path ${folder}/${name}.toml)
    list(APPEND paths ${path})
    if(NOT EXISTS ${path} OR IS_DIRECTORY ${path})
      message(FATAL_ERROR "cluster preset ${path} is missing; write it, or take ${name} out of the list of presets")
    endif()
    file(READ ${path} text)
    if(NOT text MATCHES "^# [^\n]+\n.")
      message(FATAL_ERROR "cluster preset ${path} must begin with a line `# WHAT THE CLUSTER IS`; the cluster follows")
    endif()
    if(text MATCHES "\\)toml\"")
      message(FATAL_ERROR "cluster preset ${path} contains )toml\", which ends a string in the C++ that is made of it")
    endif()
    string(FIND "${text}" "\n" end)
    string(SUBSTRING "${text}" 0 ${end} what)
    string(SUBSTRING "${what}" 2 -1 what)
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${text}" ${end} -1 toml)
    string(APPEND code "      {\"${name}\", R\"toml(${what})toml\", R\"toml(${toml})toml\"},\n")
  endforeach()
  string(APPEND code "  };\n  return *all;\n}\n\n}  // namespace motley::planner\n")
  file(GLOB unnamed ${folder}/*.toml)
  list(REMOVE_ITEM unnamed ${paths})
  if(unnamed)
    message(FATAL_ERROR "not in the list of presets: ${unnamed}; add the names where you want them listed")
  endif()
  motley_write_changed(${out} "${code}")
endfunction()
