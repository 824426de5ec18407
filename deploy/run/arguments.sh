# What each command of ./run takes, said once: for --help, and to refuse what it does not take.

COMMANDS=(setup build demo up down test pack package bench format doctor clean help)

# The flags of a command; "FLAG=" takes a value.
flags_of() {
  case $1 in
    demo) echo "--json= --example= --only= --kill --big" ;;
    up) echo "--data=" ;;
    down) echo "--delete-checkpoints" ;;
    setup) echo "--libtorch= --gpu --browser" ;;
    test) echo "--long --asan --libtorch=" ;;
    pack) echo "--gpu --libtorch=" ;;
    clean) echo "--cache --delete-checkpoints" ;;
  esac
}

help_of() {
  case $1 in
    setup) cat <<'TEXT'; torch_table
usage: ./run setup [--libtorch VERSION] [--gpu] [--browser]

Installs what is missing: Debian packages (as root; otherwise it prints the one command to run and stops) and the PyTorch wheel,
into the cache folder.

  --libtorch VERSION    that version of PyTorch besides, and compile its rank, build/release/bin/motley-rank-VERSION: a version has
                        kernels for some cards only. Workers start it for cards that motley-rank has none for
  --gpu                 also what a machine with NVIDIA cards needs besides the wheel: cuBLAS, cuDNN, NCCL and more, for each
                        libtorch that is here (2.11.0: 1.8 GB to download, 2.5 GB on disk). It says what, and fetches only what
                        is missing, and compiles the kernels of our own. The driver is not installed
  --browser             a browser without a screen, in which ./run test looks at the coordinator's page (as root; 100 MB)
TEXT
      ;;
    build) cat <<'TEXT'
usage: ./run build

Sets up, then compiles the product into build/release/bin.
TEXT
      ;;
    demo) cat <<'TEXT'
usage: ./run demo [--example NAME [--only ROWS] [--kill | --big]] [--json FILE]

Builds, then trains one transformer on five unequal emulated devices: split evenly, then as planned, while a node is killed and
another joins.

  --example NAME    instead one of deploy/examples (zorse, poplar, uneven-group, baton, hexiscale, cephalo): one job under
                    several strategies, each measured beside its prediction; or fine-tune: a model trained, exported, tuned on
                    chats and exported again. It needs a Python with transformers and, where none is here, fetches one (50 MB)
  --only ROWS       of its table, separated by commas
  --kill            instead of its table: a node of the example zorse is killed and comes back
  --big             instead of its table: a model that the cards of zorse hold only with state in the hosts' memory
  --json FILE       write the numbers there
TEXT
      ;;
    up) cat <<'TEXT'
usage: ./run up [--data FOLDER]

Builds, starts the demo's cluster and leaves it running; prints its addresses and a job file, and writes
build/cluster/prometheus.yml for a Prometheus that shows it. ./run down ends it.

  --data FOLDER    jobs may use the files in it, your own text say (data.path); may be given again. Nothing of ./run deletes there
TEXT
      ;;
    down) cat <<'TEXT'
usage: ./run down [--delete-checkpoints]

Ends the cluster that ./run up started. Checkpoints stay where they are, and it says where.

  --delete-checkpoints    delete what jobs wrote in the cluster's folder (build/cluster); what you put there stays
TEXT
      ;;
    test) cat <<'TEXT'
usage: ./run test [NAME [FILTER] | --long | --asan | --libtorch VERSION]

Builds everything and runs every check that CI runs: unit tests, PyTorch as oracle, integration, rules.

  NAME [FILTER]         build what one suite needs, and run it; with FILTER only its tests with that in their name. A suite is one of
                        deploy/run/suites.sh (faults, oracle, examples, ...) or a program of unit tests (planner_tests, ...)
  --long                instead what the daily suites leave out, up to an hour: faults at length, all plans by hand, all random plans
                        with each libtorch, and 100 of a new seed
  --asan                instead the unit tests of coordinator, worker, planner and common code under the address sanitizer
  --libtorch VERSION    instead the engine's unit tests with that version of PyTorch (./run setup --help lists them)
TEXT
      ;;
    pack) cat <<'TEXT'
usage: ./run pack [--gpu] [--libtorch VERSION]

Builds, then makes build/motley-VERSION-debian12-x86_64.tar.gz: programs, libtorch, all libraries and the C library. It runs from
any folder, without root, on any x86_64 Linux.

  --gpu                 with NVIDIA's libraries besides, as ./run setup --gpu fetched them, and -gpu in the name
  --libtorch VERSION    with the rank of that libtorch besides, which is fetched and compiled first, and -libtorch-VERSION in the
                        name: for cards and drivers that motley-rank does not serve (docs/use/lab-cards.md says which)
TEXT
      ;;
    package) cat <<'TEXT'
usage: ./run package

Builds, then makes four Debian packages (coordinator, worker, client, libtorch) in build/packages, which apt takes as a source.
TEXT
      ;;
    bench) cat <<'TEXT'
usage: ./run bench [NAME [ARGUMENT...]]

Builds and runs one benchmark, which gets the arguments; without a name, lists them.
TEXT
      ;;
    format) cat <<'TEXT'
usage: ./run format

Formats every C++ file with the version of clang-format that the tests check with.
TEXT
      ;;
    doctor) cat <<'TEXT'
usage: ./run doctor

Says what is missing on this machine, with the command that mends it, and what it has. Changes nothing. Status 1: cannot be built.
TEXT
      ;;
    clean) cat <<'TEXT'
usage: ./run clean [--cache] [--delete-checkpoints]

Removes build/, and ends the cluster of ./run up before. Checkpoints of that cluster stay where they are, and it says where.

  --cache                 remove the downloads, too; what you put into their folder stays
  --delete-checkpoints    delete what jobs wrote, too; what you put beside it stays
TEXT
      ;;
    help) usage ;;
  esac
}

# nearest WORD CANDIDATE...: the candidate that a typing mistake may have meant, or nothing.
nearest() {
  local word=$1
  shift
  printf '%s\n' "$@" | awk -v word="$word" '
    function least(a, b, c) { return a < b ? (a < c ? a : c) : (b < c ? b : c) }
    function distance(a, b,    i, j, d) {
      for (i = 0; i <= length(a); i++) d[i, 0] = i
      for (j = 0; j <= length(b); j++) d[0, j] = j
      for (i = 1; i <= length(a); i++)
        for (j = 1; j <= length(b); j++)
          d[i, j] = least(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (substr(a, i, 1) != substr(b, j, 1)))
      return d[length(a), length(b)]
    }
    # The beginning of one is no mistake.
    length(word) > 3 && index($0, word) == 1 { print; begun = 1; exit }
    { far = distance(word, $0); if (NR == 1 || far < best) { best = far; found = $0 } }
    END { if (!begun && NR > 0 && best <= (length(word) > 5 ? length(word) / 2 : 2)) print found }'
}

did_you_mean() {
  local found
  found=$(nearest "$@")
  if [[ -n $found ]]; then echo "; did you mean '$found'?"; fi
}

# check_arguments COMMAND ARGUMENT...: returns when the command takes them; else prints its help, or what is wrong, and exits.
check_arguments() {
  local command=$1 flags argument
  shift
  read -ra flags <<<"$(flags_of "$command")"
  if [[ $command == help ]]; then flags=("${COMMANDS[@]}"); fi
  while [[ $# -gt 0 ]]; do
    argument=$1
    shift
    if [[ $argument == -h || $argument == --help ]]; then help_of "$command"; exit 0; fi
    if [[ $command == help && " ${flags[*]} " == *" $argument "* ]]; then help_of "$argument"; exit 0; fi
    # What follows a benchmark's name is the benchmark's, and what follows a suite's names tests.
    if [[ ( $command == bench || $command == test ) && $argument != -* ]]; then return 0; fi
    if [[ " ${flags[*]} " == *" $argument= "* ]]; then
      [[ -n ${1:-} ]] || { fail "$command: $argument needs a value (./run $command --help)"; exit $EX_USAGE; }
      shift
    elif [[ " ${flags[*]} " != *" $argument "* || $argument == *= ]]; then
      fail "$command: unknown argument '$argument'$(did_you_mean "$argument" "${flags[@]%=}" --help) (./run $command --help)"
      exit $EX_USAGE
    fi
  done
}
