#!/usr/bin/env bash
# On a machine with a GPU and PyTorch for CUDA 13, in the folder that `./dev gpu-pack` made: holds
# every CUDA operation against the CPU, and real runs on the GPU against their simulation. Ranks
# share the GPU. Prints a table; exits 1 when a row failed, 5 when something is missing.
set -uo pipefail
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
deadline_s=${HANG_AFTER:-20}
failed=0

lack() {
  printf 'gpu-check: %s\n' "$*" >&2
  exit 5
}

torch_folder=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))' 2>/dev/null) ||
  lack "python3 finds no torch: PyTorch 2.11 for CUDA 13 is needed"
version=$(python3 -c 'import torch; print(torch.__version__)')
[[ $version == 2.11.* ]] || lack "torch is $version; the programs were built with 2.11"
libraries=$here/lib:$torch_folder/lib
for folder in "$torch_folder"/../nvidia/*/lib /usr/local/cuda/lib64 /usr/local/cuda/lib; do
  [[ ! -d $folder ]] || libraries=$libraries:$(readlink -f "$folder")
done
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
chmod +x "$here"/bin/*

missing=$(ldd "$here/bin/lockstep-rank-cuda" | sed -n 's/^\s*\(\S*\) => not found/\1/p')
[[ -z $missing ]] || lack "lockstep-rank-cuda lacks: ${missing//$'\n'/ }"

ranks_alive() {
  local alive=0 link
  for link in /proc/[0-9]*/exe; do
    [[ $(readlink "$link" 2>/dev/null) != "$here/bin/lockstep-rank-cuda" ]] || alive=$((alive + 1))
  done
  echo "$alive"
}

# row NAME SECONDS OK [NOTE]
row() {
  local mark=ok
  if [[ $3 -ne 0 ]]; then
    mark=FAILED
    failed=$((failed + 1))
  fi
  printf '%-34s %7.1f s  %-6s  %s\n' "$1" "$2" "$mark" "${4:-}"
}

seconds_since() { awk -v a="$1" -v b="$(date +%s.%N)" 'BEGIN { print b - a }'; }

# on_gpu NAME EXIT_CODE FILE[:CASE] [ARGUMENTS...]: the real run ends with this code, equals its
# simulation in outcome, calls, values and memory, and leaves no process.
on_gpu() {
  local name=$1 wanted=$2 scenario=$3 start code bad=0 note
  shift 3
  start=$(date +%s.%N)
  timeout 300 "$here/bin/lockstep" exec "$scenario" --device cuda --oversubscribe \
    --hang-after "$deadline_s" "$@" >"$work/log" 2>&1
  code=$?
  note=$(sed -nE 's/^ *(outcome .*)$/\1/p' "$work/log" | tail -n 1)
  [[ $code -eq $wanted ]] || bad=1
  [[ $note == "outcome equal"* && $note == *"calls equal"* ]] || bad=1
  [[ $wanted -ne 0 || (($note == *"values equal"* || $note == *"values not compared"*) && $note == *"memory equal"*) ]] || bad=1
  [[ $(ranks_alive) -eq 0 ]] || bad=1
  row "$name" "$(seconds_since "$start")" "$bad" "exit $code; ${note:-no comparison}"
  [[ $bad -eq 0 ]] || sed 's/^/    /' "$work/log" | tail -n 15
}

kernels() {
  local start code
  start=$(date +%s.%N)
  timeout 300 "$here/bin/cuda_tests" >"$work/log" 2>&1
  code=$?
  row "kernels, streams, collectives" "$(seconds_since "$start")" "$code" "$(tail -n 2 "$work/log" | tr -s '\n=' ' ')"
  [[ $code -eq 0 ]] || sed 's/^/    /' "$work/log" | tail -n 40
}

# A rank is killed while both wait; the other ends, and the finding names the dead one.
killed() {
  local start child victim='' code bad=0 link
  start=$(date +%s.%N)
  timeout 300 "$here/bin/lockstep" exec "$here/checks/operations.yaml:waits_for_a_dead_rank" \
    --device cuda --oversubscribe --hang-after "$deadline_s" >"$work/log" 2>&1 &
  child=$!
  for _ in $(seq 1 200); do
    sleep 0.1
    [[ $(ranks_alive) -eq 2 ]] && break
  done
  sleep 8 # past the first all_reduce
  for link in /proc/[0-9]*/exe; do
    if [[ $(readlink "$link" 2>/dev/null) == "$here/bin/lockstep-rank-cuda" ]] &&
      tr '\0' '\n' <"${link%exe}environ" 2>/dev/null | grep -qx RANK=1; then
      victim=$(basename "${link%/exe}")
    fi
  done
  [[ -n $victim ]] && kill -KILL "$victim"
  wait "$child"
  code=$?
  [[ -n $victim && $code -eq 1 && $(ranks_alive) -eq 0 ]] || bad=1
  grep -q 'rank 1' "$work/log" || bad=1
  row "kill a rank" "$(seconds_since "$start")" "$bad" "exit $code"
  [[ $bad -eq 0 ]] || sed 's/^/    /' "$work/log" | tail -n 15
}

# The GPU is measured, and a prediction rests on it.
calibrated() {
  local start code bad=0 note
  start=$(date +%s.%N)
  timeout 600 "$here/bin/lockstep" calibrate --device cuda --quick --ranks 1 \
    -o "$work/gpu.json" >"$work/log" 2>&1
  code=$?
  [[ $code -eq 0 && -s $work/gpu.json ]] || bad=1
  note=$(tail -n 2 "$work/log" | head -n 1 | tr -s ' ')
  row "calibrate" "$(seconds_since "$start")" "$bad" "exit $code; $note"
  [[ $bad -eq 0 ]] || sed 's/^/    /' "$work/log" | tail -n 15
}

# The step of DDP against PyTorch's own on the same GPUs. The ratio is told, and judged by whoever
# reads it: the aim is 1.05.
against_pytorch() {
  local model=$1 start code ranks=1
  [[ $(nvidia-smi --list-gpus 2>/dev/null | wc -l) -lt 2 ]] || ranks=2
  start=$(date +%s.%N)
  timeout 600 python3 "$here/real_ddp/compare.py" "$model" 5 --device cuda --ranks "$ranks" \
    --lockstep "$here/bin/lockstep" >"$work/log" 2>&1
  code=$?
  row "$model against PyTorch DDP" "$(seconds_since "$start")" "$code" "$(tail -n 1 "$work/log")"
  [[ $code -eq 0 ]] || sed 's/^/    /' "$work/log" | tail -n 15
}

"$here/bin/lockstep" doctor || true
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || true
printf '\ntorch %s, %s, %s\n\n' "$version" "$(date -u +%F)" "$(uname -r)"

kernels
for case in reductions gathers messages; do
  on_gpu "operations: $case" 0 "$here/checks/operations.yaml:$case"
done
on_gpu "single device" 0 "$here/checks/trainings.yaml:single"
on_gpu "ddp, 2 ranks" 0 "$here/checks/trainings.yaml:ddp_two"
on_gpu "ddp, 4 ranks" 0 "$here/checks/trainings.yaml:ddp_four"
on_gpu "every layer that trains" 0 "$here/checks/trainings.yaml:layers"
if [[ $(nvidia-smi --list-gpus 2>/dev/null | wc -l) -ge 2 ]]; then
  on_gpu "dp, 2 devices" 0 "$here/checks/trainings.yaml:dp"
else
  printf '%-34s %9s  %-6s  %s\n' "dp, 2 devices" "" "-" "needs two GPUs"
fi
on_gpu "hang: left out" 1 "$here/checks/operations.yaml:left_out"
on_gpu "hang: guarded all_gather" 1 "$here/scenarios/guarded-all-gather.yaml:guarded"
killed
calibrated
against_pytorch resnet50
against_pytorch gpt2

printf '\n%d failed\n' "$failed"
[[ $failed -eq 0 ]]
