#!/usr/bin/env bash
# What does a load client cost? nginx on one pinned core, each client on another, 50 connections, in interleaved blocks.
# Installs nginx and wrk from Debian and hey and vegeta by the Go proxy; needs root, two cores and a quiet machine.
#   BLOCKS=20 SECONDS_EACH=2 bash docs/bench/load-clients.sh
# CLIENTS names some of toll, toll-raw, wrk, hey and vegeta; the first that is there of wrk and toll is what the others are
# divided by. TOOLS is a folder to keep the clients in; with PREPARE=1 they are only installed there.
set -euo pipefail
cd "$(dirname "$0")/../.."
blocks=${BLOCKS:-20} each=${SECONDS_EACH:-2} conns=50 port=${PORT:-18081}
clients=${CLIENTS:-toll toll-raw wrk hey vegeta}
dir=$(mktemp -d)
tools=${TOOLS:-$dir}
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
trap '[ -f "$dir/pid" ] && kill "$(cat "$dir/pid")"; rm -rf "$dir"' EXIT

command -v nginx >/dev/null && command -v wrk >/dev/null ||
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq nginx-light wrk >/dev/null; }
[ -n "${TOOLS:-}" ] && [ -x "$tools/toll" ] && [ -z "${PREPARE:-}" ] || go build -o "$tools/toll" ./cmd/toll
[ -x "$tools/hey" ] || GOBIN=$tools go install github.com/rakyll/hey@v0.1.4
[ -x "$tools/vegeta" ] || GOBIN=$tools go install github.com/tsenart/vegeta/v12@v12.13.0
[ -x "$tools/loadclients" ] || go build -o "$tools/loadclients" ./docs/bench/loadclients
[ -z "${PREPARE:-}" ] || exit 0

cat >"$dir/nginx.conf" <<CONF
worker_processes 1; daemon on; pid $dir/pid; error_log $dir/error.log;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 1000000000; keepalive_timeout 600s;
  server { listen 127.0.0.1:$port; location / { default_type application/json; return 200 '{"status":"ok","service":1}'; } } }
CONF
taskset -c 1 nginx -c "$dir/nginx.conf"
url=http://127.0.0.1:$port/

# measure NAME COMMAND: runs it on core 0 and prints name, calls, seconds, CPU seconds. Those of toll are its own count of the
# window, since it does more than call: it looks at the machine first. The others are counted from start to end.
measure() {
  local name=$1; shift
  local calls secs cpu
  TIMEFORMAT='%U %S'
  { time taskset -c 0 "$@" >"$dir/out" 2>/dev/null; } 2>"$dir/cpu"
  cpu=$(awk 'END {print $1+$2}' "$dir/cpu")
  case $name in
    toll*) read -r calls secs cpu < <(python3 -c "
import json; d=json.load(open('$dir/out')); r=[r for r in d['rows'] if r['role']==''][0]; print(r['ok'], r['elapsed_s'], r['client']['cpu_us_per_op']*r['ok']/1e6)") ;;
    wrk) calls=$(awk '/requests in/ {print $1}' "$dir/out"); secs=$each ;;
    hey) calls=$(awk '/responses/ {s+=$2} END {print s}' "$dir/out"); secs=$(awk '/Total:/ {print $2; exit}' "$dir/out") ;;
    vegeta) calls=$(awk '/^Requests/ {gsub(",",""); print $5}' "$dir/out"); secs=$each ;;
  esac
  echo "$name $calls $secs $cpu"
}

run() {
  case $1 in
    toll) measure toll "$tools/toll" load "$url" -c $conns -d "${each}s" --warmup 0s --no-null --json ;;
    toll-raw) measure toll-raw "$tools/toll" load "$url" -c $conns -d "${each}s" --warmup 0s --no-null --json --client raw ;;
    wrk) measure wrk wrk -t1 -c$conns -d"${each}s" --latency "$url" ;;
    hey) measure hey "$tools/hey" -c $conns -z "${each}s" "$url" ;;
    vegeta) measure vegeta bash -c "echo 'GET $url' | '$tools/vegeta' attack -rate=0 -max-workers=$conns -workers=$conns -duration=${each}s | '$tools/vegeta' report" ;;
  esac
}

for block in $(seq "$blocks"); do
  for client in $(shuf -e $clients --random-source=<(yes "$block")); do
    echo "$block $(run "$client")"
  done
done >"$dir/blocks"

"$tools/loadclients" <"$dir/blocks"
