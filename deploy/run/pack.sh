# ./run pack: a tarball that runs from any folder without root, on any x86_64 Linux (docs/use/packages.md).
source deploy/run/build.sh

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

# fill_pack FOLDER COMPONENT...: what the tarball unpacks.
fill_pack() {
  local folder=$1 component name
  shift
  rm -rf "$folder"
  for component; do cmake --install "$BUILD_DIR" --prefix "$folder" --component "$component" --strip || return; done
  for name in "${NOT_PACKED[@]}"; do rm -rf "${folder:?}/$name"; done
  mv "$folder/bin" "$folder/libexec"
  make_launchers "$folder" && bring_libraries "$folder" || return
  mkdir -p "$folder/share/systemd/user" && cp "$PACK_SOURCES"/*.service "$folder/share/systemd/user/" || return
  write_readme "$folder" || return
  python3 "$PACK_SOURCES/bundled.py" "$folder" --torch "$TORCH_DIR" --version "$(motley_version)" --time "$(commit_time)"
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

# pack [--gpu]
pack() {
  local name components=(coordinator worker client libtorch)
  name=$(pack_name "")
  if [[ ${1:-} == --gpu ]]; then
    source deploy/run/setup_gpu.sh
    if [[ -n $(missing_gpu_rows "$MAIN_TORCH") ]]; then
      fail "pack: --gpu packs what './run setup --gpu' fetches; run that first"
      exit $EX_UNAVAILABLE
    fi
    name=$(pack_name -gpu) components+=(cards)
  fi
  build_product
  with_lock "$ROOT/build/.pack.lock" step "pack" pack_all "$name" "${components[@]}"
  say "packed: build/$name.tar.gz ($(du -h "$ROOT/build/$name.tar.gz" | cut -f 1))"
}
