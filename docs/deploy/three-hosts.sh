#!/usr/bin/env bash
# Three hosts, each a network namespace of its own with its own addresses: one has the NATS server and the coordinator, one the
# gateway, one the agents and two workers. Gateway, agents, coordinator and workers meet at the one server. On real machines the
# commands behind "on" are the same.
#
#   three-hosts.sh TOLL [DIR]     TOLL: the program; DIR: where results go. It needs root and iproute2.
set -euo pipefail
toll=$(realpath "${1:?usage: three-hosts.sh TOLL [DIR]}")
results=$(realpath -m "${2:-results}")
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
id=t$$
net=
pids=()

cleanup() {
  exec 7>&- || true # what serves ends when its input does
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  for host in a b c; do ip netns delete "$id-$host" 2>/dev/null || true; done
  [ -z "$net" ] || rmdir "${TMPDIR:-/tmp}/toll-three-hosts-$net"
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# Each pair of hosts has a wire of its own.
for host in a b c; do
  ip netns add "$id-$host"
  ip -n "$id-$host" link set lo up
done
wire() { # HOST ADDRESS HOST ADDRESS: the hosts' own addresses, and a way from each to the other's
  ip link add "$id$1$3" netns "$id-$1" type veth peer name "$id$3$1" netns "$id-$3"
  ip -n "$id-$1" address add "$2/32" dev "$id$1$3"
  ip -n "$id-$3" address add "$4/32" dev "$id$3$1"
  ip -n "$id-$1" link set "$id$1$3" up
  ip -n "$id-$3" link set "$id$3$1" up
  ip -n "$id-$1" route add "$4/32" dev "$id$1$3" src "$2"
  ip -n "$id-$3" route add "$2/32" dev "$id$3$1" src "$4"
}
# Addresses of a network that no other run has: several at once then don't meet, even where they share a way out. A folder is
# taken by whoever makes it, and given back at the end.
for n in $(seq 0 253); do
  n=$(((n + $$) % 254))
  if mkdir "${TMPDIR:-/tmp}/toll-three-hosts-$n" 2>/dev/null; then
    net=$n
    break
  fi
done
[ -n "$net" ] || { echo "all 254 networks of 198.19.0.0/16 are taken; if no run is going on, remove ${TMPDIR:-/tmp}/toll-three-hosts-*" >&2; exit 1; }
a=198.19.$net.1 b=198.19.$net.2 c=198.19.$net.3
wire a "$a" b "$b"
wire a "$a" c "$c"
wire b "$b" c "$c"
on() { local host=$1; shift; ip netns exec "$id-$host" "$@"; }

mkfifo "$work/open"
exec 7<>"$work/open"
serve() { # HOST ARGUMENT...: starts what serves and waits for its first line
  local host=$1 out="$work/serve-${#pids[@]}"
  shift
  on "$host" "$toll" serve "$@" <"$work/open" >"$out" 7>&- &
  pids+=($!)
  for _ in $(seq 600); do
    [ -s "$out" ] && return
    sleep 0.05
  done
  echo "toll serve $* did not start" >&2
  return 1
}

nats=nats://$a:4222
serve a bus-broker --carrier nats --store "$work/streams" --addr "$a:4222"
serve c gateway-agents --at "$nats"
serve b gateway --at "$nats" --addr "$b:8080"

sed "s/GATEWAY/$b/" "$here/load.yaml" >"$work/load.yaml"
workers=()
for n in 1 2; do
  on c "$toll" worker "$nats" --name "host-c-$n" --dir "$results/worker" &
  workers+=($!)
done
on a "$toll" run "$work/load.yaml" --workers 2 --nats "$nats" --out "$results"
for pid in "${workers[@]}"; do wait "$pid"; done
