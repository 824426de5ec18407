# ./run format: every C++ file as clang-format leaves it, in the one version that the tests check with.
source deploy/run/tools.sh

format_all() {
  setup_clang_format
  [[ -x $CLANG_FORMAT ]] || { fail "clang-format could not be installed; see the log above"; exit 1; }
  git ls-files '*.cc' '*.h' | xargs "$CLANG_FORMAT" -i
}
