#!/bin/sh
# Gloo's own all-gather over links that the kernel shapes: one network namespace per rank, joined by a bridge, a token
# bucket in each direction. Needs root, iproute2 and the kernel's tbf.
#   gloo_shaped.sh PATH_OF_collectives_bench [ranks] [megabytes] [Mbit/s]
set -eu
bench=$1 ranks=${2:-5} megabytes=${3:-10} rate=${4:-400}
tag=mg$$
folder=$(mktemp -d)
cleanup() {
  for i in $(seq 0 $((ranks - 1))); do ip netns del "$tag-$i" 2>/dev/null || true; done
  ip link del "$tag" 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
ip link add "$tag" type bridge
ip link set "$tag" up
for i in $(seq 0 $((ranks - 1))); do
  ip netns add "$tag-$i"
  ip link add "$tag.$i" type veth peer name eth0 netns "$tag-$i"
  ip link set "$tag.$i" master "$tag" up
  ip -n "$tag-$i" addr add "10.77.0.$((i + 1))/24" dev eth0
  ip -n "$tag-$i" link set eth0 up
  tc qdisc add dev "$tag.$i" root tbf rate "${rate}mbit" burst 128kb latency 200ms
  tc -n "$tag-$i" qdisc add dev eth0 root tbf rate "${rate}mbit" burst 128kb latency 200ms
done
echo "$ranks ranks, $megabytes MB, links of $rate Mbit/s each way"
for share in 0 0.35 0.5 0.75 0.9 1.0; do
  store=$folder/$share
  mkdir "$store"
  pids=
  for i in $(seq 0 $((ranks - 1))); do
    ip netns exec "$tag-$i" "$bench" gloo-rank "$i" "$ranks" "10.77.0.$((i + 1))" "$store" "$megabytes" "$share" > "$folder/out.$i" &
    pids="$pids $!"
  done
  for pid in $pids; do wait "$pid"; done
  echo "largest share $share: $(cat "$folder/out.0") ms"
done
