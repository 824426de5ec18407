# ./run pack: a tarball that runs from any folder without root, on any x86_64 Linux (docs/use/packages.md).
source deploy/run/libtorch.sh

PACK_SOURCES=$ROOT/deploy/pack
# Of an installed tree: what only a machine with systemd and root has a use for.
NOT_PACKED=(lib/systemd lib/sysusers.d)

motley_version() { sed -n 's/^project(motley VERSION \([0-9.]*\).*/\1/p' "$ROOT/CMakeLists.txt"; }

pack_name() { echo "motley-$(motley_version)-debian12-x86_64$1"; }

# libraries_of FOLDER: "NAME PATH" of each library from outside FOLDER that its programs need, the loader included. What
# libtorch asks for besides when a card is used comes with it.
libraries_of() {
  local folder=$1 program
  for program in "$folder"/libexec/*; do
    ldd "$program" | sed -n 's/^\t\(\S*\) => not found$/\1 missing/p
                             s/^\t\(\S*\) => \(\/\S*\) (0x.*/\1 \2/p
                             s/^\t\(\/\S*\/\(ld-\S*\)\) (0x.*/\2 \1/p'
  done | sort -u | grep -vF " $folder/"
}

bring_libraries() {
  local folder=$1 name path
  while read -r name path; do
    if [[ $path == missing ]]; then echo "a program needs $name, which is not found"; return 1; fi
    install -m 644 "$path" "$folder/lib/$name" || return
  done < <(libraries_of "$folder")
  # `lib/ld-linux-x86-64.so.2 --list PROGRAM` says where a program finds its libraries.
  chmod 755 "$folder"/lib/ld-*
}

make_launchers() {
  local folder=$1 program
  mkdir -p "$folder/bin"
  for program in "$folder"/libexec/*; do
    # Without libraries, and at a fixed place: it has no loader that would relocate it.
    gcc -std=gnu11 -O2 -Wall -Wextra -Werror -ffreestanding -fno-builtin -fno-tree-loop-distribute-patterns -fno-stack-protector \
      -fcf-protection=none -fno-pie -no-pie -static -nostdlib -Wl,-z,noexecstack -Wl,--build-id=none -s \
      -o "$folder/bin/$(basename "$program")" "$PACK_SOURCES/launcher.c" || return
  done
}

write_readme() { sed -e "s/@VERSION@/$(motley_version)/" "$PACK_SOURCES/README.txt.in" >"$1/README.txt"; }

# The demo with its text, so that it runs where no package can be installed.
bring_demo() {
  local folder=$1/share/motley/demo
  mkdir -p "$folder" && install -m 644 "$ROOT"/deploy/demo/*.py "$folder/" || return
  PYTHONPATH=$ROOT/deploy/demo python3 -B -c 'import sys, text; print(text.extract_text(sys.argv[1]))' "$MOTLEY_CACHE" || return
  install -m 644 "$MOTLEY_CACHE/kjv.txt" "$folder/" && install -m 755 "$PACK_SOURCES/motley-demo" "$1/motley-demo"
}

# install_parts BUILD_FOLDER FOLDER COMPONENT...
install_parts() {
  local build=$1 folder=$2 component
  shift 2
  for component; do cmake --install "$build" --prefix "$folder" --component "$component" --strip || return; done
}

# bundled FOLDER [VERSION]: says what the tarball has of others, the libtorch of the second rank among it.
bundled() {
  local wheels=(--wheels "lib/motley=$TORCH_DIR")
  if [[ -n ${2:-} ]]; then wheels+=(--wheels "lib/$(rank_of "$2")=$(torch_folder_of "$2")"); fi
  python3 "$PACK_SOURCES/bundled.py" "$1" "${wheels[@]}" --version "$(motley_version)" --time "$(commit_time)"
}

# fill_pack FOLDER VERSION COMPONENT...: what the tarball unpacks. With a version the rank of that libtorch, too.
fill_pack() {
  local folder=$1 second=$2 name parts=(worker libtorch)
  shift 2
  rm -rf "$folder"
  install_parts "$BUILD_DIR" "$folder" "$@" || return
  if [[ -n $second ]]; then
    if [[ " $* " == *" cards "* ]]; then parts+=(cards); fi
    install_parts "$(build_folder_of "$second")" "$folder" "${parts[@]}" || return
  fi
  for name in "${NOT_PACKED[@]}"; do rm -rf "${folder:?}/$name"; done
  mv "$folder/bin" "$folder/libexec"
  make_launchers "$folder" && bring_libraries "$folder" || return
  mkdir -p "$folder/share/systemd/user" && cp "$PACK_SOURCES"/*.service "$folder/share/systemd/user/" || return
  bring_demo "$folder" && write_readme "$folder" && bundled "$folder" "$second"
}

commit_time() { git -C "$ROOT" log -1 --format=%ct 2>/dev/null || date +%s; }

# Same content, same bytes: files in order, of nobody, with the commit's time.
write_tarball() {
  local folder=$1 out=$2
  tar -C "$(dirname "$folder")" --sort=name --mtime="@$(commit_time)" --owner=0 --group=0 --numeric-owner -cf - \
    "$(basename "$folder")" | gzip -n -6 >"$out.partial" && mv "$out.partial" "$out"
}

pack_all() {
  local folder=$ROOT/build/pack/$1 out=$ROOT/build/$1.tar.gz
  shift
  fill_pack "$folder" "$@" && write_tarball "$folder" "$out" && rm -rf "$ROOT/build/pack"
}

# needs_gpu_libraries [VERSION]: exits where ./run setup --gpu has not fetched them for motley-rank, and for the rank of that libtorch.
needs_gpu_libraries() {
  local second=$1 version
  source deploy/run/setup_gpu.sh
  for version in "$MAIN_TORCH" $second; do
    [[ -n $(missing_gpu_rows "$version") ]] || continue
    fail "pack: --gpu packs what './run setup ${second:+--libtorch $second }--gpu' fetches; run that first"
    exit $EX_UNAVAILABLE
  done
}

# pack [--gpu] [--libtorch VERSION]
pack() {
  local gpu= second= name components=(coordinator worker client libtorch)
  while [[ $# -gt 0 ]]; do
    if [[ $1 == --gpu ]]; then gpu=yes; else second=$2; shift; fi
    shift
  done
  if [[ -n $second ]]; then check_torch_version pack "$second"; fi
  if [[ $second == "$MAIN_TORCH" ]]; then second=; fi
  # Nothing is compiled for a tarball that cannot be made.
  if [[ -n $gpu ]]; then components+=(cards) && needs_gpu_libraries "$second"; fi
  build_product
  if [[ -n $second ]]; then setup_libtorch "$second"; fi
  name=$(pack_name "${gpu:+-gpu}${second:+-libtorch-$second}")
  with_lock "$ROOT/build/.pack.lock" step "pack" pack_all "$name" "$second" "${components[@]}"
  say "packed: build/$name.tar.gz ($(du -h "$ROOT/build/$name.tar.gz" | cut -f 1))"
}
