# ./run package: four Debian packages and a folder that apt takes as a source (docs/use/packages.md).
source deploy/run/build.sh

PACKAGES_DIR=$ROOT/build/packages
PACKAGING_PACKAGES=(dpkg-dev)
# Whoever makes the service's user at installation.
SYSUSERS="systemd | systemd-standalone-sysusers | systemd-sysusers"

# depends_of PROGRAM...: packages of the libraries that programs need, with versions. libtorch's libraries are of no package yet.
depends_of() {
  local folder
  folder=$(mktemp -d) || return
  mkdir "$folder/debian" && touch "$folder/debian/control"
  (cd "$folder" && dpkg-shlibdeps --ignore-missing-info -O "${@/#/-e}" 2>/dev/null) | sed -n 's/^shlibs:Depends=//p'
  rm -rf "$folder"
}

# libtorch's alone is compressed by zstd: 1 GB by xz takes minutes.
make_packages() {
  local config=$BUILD_DIR/CPackConfig.cmake libtorch=motley-libtorch-${MAIN_TORCH%.*} coordinator worker client
  coordinator=$(depends_of "$BIN_DIR/motley-coordinator") && client=$(depends_of "$BIN_DIR/motley") &&
    worker=$(depends_of "$BIN_DIR/motley-worker" "$BIN_DIR/motley-rank") || return
  if [[ -z $coordinator || -z $worker || -z $client ]]; then echo "dpkg-shlibdeps says of no library whose it is"; return 1; fi
  rm -rf "$PACKAGES_DIR"
  mkdir -p "$PACKAGES_DIR"
  MOTLEY_CHANGELOG_DATE=$(date -R -d "@$(git -C "$ROOT" log -1 --format=%ct 2>/dev/null || date +%s)")
  export MOTLEY_CHANGELOG_DATE
  cpack --config "$config" -B "$PACKAGES_DIR" -D "CPACK_COMPONENTS_ALL=coordinator;worker;client" \
    -D CPACK_DEBIAN_COMPRESSION_TYPE=xz \
    -D "CPACK_DEBIAN_COORDINATOR_PACKAGE_DEPENDS=$coordinator, $SYSUSERS" \
    -D "CPACK_DEBIAN_WORKER_PACKAGE_DEPENDS=$worker, $libtorch, $SYSUSERS" \
    -D "CPACK_DEBIAN_CLIENT_PACKAGE_DEPENDS=$client" || return
  cpack --config "$config" -B "$PACKAGES_DIR" -D CPACK_COMPONENTS_ALL=libtorch -D CPACK_DEBIAN_COMPRESSION_TYPE=zstd || return
  rm -rf "$PACKAGES_DIR/_CPack_Packages"
  make_source
}

# A source of packages for apt, without a signature: deb [trusted=yes] file:/FOLDER ./
make_source() {
  cd "$PACKAGES_DIR" || return
  dpkg-scanpackages --multiversion . >Packages && gzip -n -k -9 Packages || return
  {
    printf 'Origin: Motley\nLabel: Motley\nSuite: bookworm\nCodename: bookworm\nArchitectures: amd64\nComponents: main\n'
    printf 'Date: %s\nSHA256:\n' "$(date -Ru)"
    sha256sum Packages Packages.gz | while read -r sum name; do printf ' %s %s %s\n' "$sum" "$(stat -c %s "$name")" "$name"; done
  } >Release
}

package() {
  local missing
  build_product
  mapfile -t missing < <(missing_packages "${PACKAGING_PACKAGES[@]}")
  if [[ ${#missing[@]} -gt 0 ]]; then
    fail "package: needs ${missing[*]}; once as root: $(apt_command "${missing[@]}")"
    exit $EX_UNAVAILABLE
  fi
  with_lock "$ROOT/build/.package.lock" step "package" make_packages
  say "packages, and a source for apt: build/packages ($(du -sh "$PACKAGES_DIR" | cut -f 1))"
}
