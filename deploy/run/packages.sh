# The Debian packages that Motley needs, with what for.

PACKAGES=(
  # compiler and build
  g++ cmake ninja-build ccache mold pkg-config git ca-certificates
  # fetching the PyTorch wheel; the demo and the tests are Python scripts
  python3 python3-pip python3-venv
  # RPC, plain values, state, metrics, configuration
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev libssl-dev
  prometheus-cpp-dev libsqlite3-dev libspdlog-dev libtomlplusplus-dev nlohmann-json3-dev libcli11-dev libsystemd-dev
  # checksums (CRC32C) of TensorBoard's event files
  libisal-dev
  # graph partitions of the planner, memory of its searches
  libmetis-dev libmimalloc-dev
  # unit tests and benchmarks; Gloo's collectives to compare with; networks to cut
  libgtest-dev libgmock-dev libbenchmark-dev libgloo-dev iproute2 nftables
  # English prose for the demo (the text, and the program that unpacks it)
  bible-kjv bible-kjv-text
)

# What only ./run test needs.
TEST_PACKAGES=(
  # the analysis of lock annotations, which GCC ignores
  clang-16
  # shells that take the completion, the reader of the man page, the judge of the units
  zsh fish man-db systemd
  # builds grpcurl, which Debian does not have
  golang-go
  # what makes Debian packages, and reads the compose file
  dpkg-dev python3-yaml
)

# What the tests of the page, and the pictures of it in docs, look at it with: 100 MB. Debian has it, Ubuntu does not.
BROWSER_PACKAGES=(chromium-headless-shell fonts-dejavu-core)

is_debian() { command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; }

# missing_packages PACKAGE...
missing_packages() {
  local package
  for package; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

apt_command() { echo "apt-get update && apt-get install -y --no-install-recommends $*"; }
