#!/usr/bin/env bash
# On a machine with a GPU and PyTorch for CUDA 13, in the folder that `./dev gpu-pack` made: holds
# every CUDA operation against the CPU, and real runs on the GPU against their simulation. Ranks
# share the GPU. Prints a table; exits 1 when a row failed, 5 when something is missing.
#
#   check.sh [SECTION...]    kernels operations trainings hangs calibrate pytorch; none named: all
#
# LOGS=FOLDER keeps the whole output of every row, one file for each; HANG_AFTER=SECONDS is the
# deadline of each real run.
set -uo pipefail
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
work=${LOGS:-}
if [[ -z $work ]]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work"
deadline_s=${HANG_AFTER:-20}
failed=0
export NCCL_DEBUG=${NCCL_DEBUG:-WARN} # the reason of a failure stands beside it

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

# log_of NAME: where the output of a row goes.
log_of() { printf '%s/%s.log' "$work" "${1//[^a-zA-Z0-9]/-}"; }

# told_when_failed BAD LOG: the end of the output, and what NCCL or CUDA complained of before it.
told_when_failed() {
  [[ $1 -eq 0 ]] && return
  grep -aE 'NCCL WARN|the GPU or NCCL|CUDA error|error:' "$2" | sort -u | head -n 20 | sed 's/^/    ! /'
  tail -n 25 "$2" | sed 's/^/    /'
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
  local name=$1 wanted=$2 scenario=$3 start code bad=0 note log
  shift 3
  log=$(log_of "$name")
  start=$(date +%s.%N)
  timeout 300 "$here/bin/lockstep" exec "$scenario" --device cuda --oversubscribe \
    --hang-after "$deadline_s" "$@" >"$log" 2>&1
  code=$?
  note=$(sed -nE 's/^ *(outcome .*)$/\1/p' "$log" | tail -n 1)
  [[ $code -eq $wanted ]] || bad=1
  [[ $note == "outcome equal"* && $note == *"calls equal"* ]] || bad=1
  [[ $wanted -ne 0 || (($note == *"values equal"* || $note == *"values not compared"*) && $note == *"memory equal"*) ]] || bad=1
  [[ $(ranks_alive) -eq 0 ]] || bad=1
  row "$name" "$(seconds_since "$start")" "$bad" "exit $code; ${note:-no comparison}"
  told_when_failed "$bad" "$log"
}

kernels() {
  local start code log
  log=$(log_of kernels)
  start=$(date +%s.%N)
  timeout 300 "$here/bin/cuda_tests" >"$log" 2>&1
  code=$?
  row "kernels, streams, collectives" "$(seconds_since "$start")" "$code" "$(tail -n 2 "$log" | tr -s '\n=' ' ')"
  [[ $code -eq 0 ]] || grep -aE -A 12 '^\.\.\.|FAILED:' "$log" | head -n 150 | sed 's/^/    /'
}

# A rank kills itself before its second call; the other ends, and the finding names the dead one.
killed() {
  local start code bad=0 log
  log=$(log_of killed)
  start=$(date +%s.%N)
  timeout 300 "$here/bin/lockstep" exec "$here/checks/operations.yaml:waits_for_a_dead_rank" \
    --device cuda --oversubscribe --hang-after "$deadline_s" >"$log" 2>&1
  code=$?
  [[ $code -eq 1 && $(ranks_alive) -eq 0 ]] || bad=1
  grep -q 'rank 1] ended by signal 9' "$log" && grep -q 'rank 1 was lost' "$log" || bad=1
  row "a rank dies" "$(seconds_since "$start")" "$bad" "exit $code"
  told_when_failed "$bad" "$log"
}

# The GPU is measured, and a prediction rests on it.
calibrated() {
  local start code bad=0 note log
  log=$(log_of calibrate)
  start=$(date +%s.%N)
  timeout 300 "$here/bin/lockstep" calibrate --device cuda --quick --ranks 1 \
    -o "$work/gpu.json" >"$log" 2>&1
  code=$?
  [[ $code -eq 0 && -s $work/gpu.json ]] || bad=1
  note=$(tail -n 2 "$log" | head -n 1 | tr -s ' ')
  row "calibrate" "$(seconds_since "$start")" "$bad" "exit $code; $note"
  told_when_failed "$bad" "$log"
}

# The step of DDP against PyTorch's own on the same GPUs. The ratio is told, and judged by whoever
# reads it: the aim is 1.05.
against_pytorch() {
  local model=$1 start code ranks=1 log
  log=$(log_of "$model")
  [[ $(nvidia-smi --list-gpus 2>/dev/null | wc -l) -lt 2 ]] || ranks=2
  start=$(date +%s.%N)
  timeout 300 python3 "$here/real_ddp/compare.py" "$model" "${ROUNDS:-3}" --device cuda \
    --ranks "$ranks" --lockstep "$here/bin/lockstep" >"$log" 2>&1
  code=$?
  row "$model against PyTorch DDP" "$(seconds_since "$start")" "$code" "$(tail -n 1 "$log")"
  told_when_failed "$code" "$log"
}

"$here/bin/lockstep" doctor || true
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || true
printf '\ntorch %s, %s, %s\n\n' "$version" "$(date -u +%F)" "$(uname -r)"

operations() {
  local case
  for case in reductions gathers messages; do
    on_gpu "operations: $case" 0 "$here/checks/operations.yaml:$case"
  done
}

trainings() {
  on_gpu "single device" 0 "$here/checks/trainings.yaml:single"
  on_gpu "ddp, 2 ranks" 0 "$here/checks/trainings.yaml:ddp_two"
  on_gpu "ddp, 4 ranks" 0 "$here/checks/trainings.yaml:ddp_four"
  on_gpu "every layer that trains" 0 "$here/checks/trainings.yaml:layers"
  if [[ $(nvidia-smi --list-gpus 2>/dev/null | wc -l) -ge 2 ]]; then
    on_gpu "dp, 2 devices" 0 "$here/checks/trainings.yaml:dp"
  else
    printf '%-34s %9s  %-6s  %s\n' "dp, 2 devices" "" "-" "needs two GPUs"
  fi
}

hangs() {
  on_gpu "hang: left out" 1 "$here/checks/operations.yaml:left_out"
  on_gpu "hang: guarded all_gather" 1 "$here/scenarios/guarded-all-gather.yaml:guarded"
  killed
}

pytorch() {
  against_pytorch resnet50
  against_pytorch gpt2
}

all=(kernels operations trainings hangs calibrate pytorch)
[[ $# -gt 0 ]] || set -- "${all[@]}"
for section in "$@"; do
  case $section in
    kernels | operations | trainings | hangs | pytorch) "$section" ;;
    calibrate) calibrated ;;
    *) lack "no section $section: ${all[*]}" ;;
  esac
done

printf '\n%d failed\n' "$failed"
[[ $failed -eq 0 ]]
