#include "cli/search_help.hpp"

namespace lockstep::cli {

extern const std::string_view plan_help = R"(
lockstep plan FILE[:CASE]     search for the fastest way to divide a training among its GPUs

  lockstep plan train.yaml
  lockstep plan train.yaml --samples 1024 --time-limit 300 --top 20
  lockstep plan train.yaml --set trainer.num_nodes=16 --format csv -o layouts.csv

The model, cluster, precision and optimizer are the scenario's. Its strategy, batch size,
accumulation and activation checkpointing are replaced: by ddp, ZeRO, FSDP, tensor parallelism
within a node, pipelines and their products, with micro-batches of powers of two. What cannot fit is
left out, the rest is simulated for three steps. Each layout has the command that runs it again.

  --samples N           of an optimizer step (data.train.batch_size on every GPU)
  --top N               layouts shown (10)
  --time-limit SECONDS  simulate no longer than this (60); the table says what was not tried
  --set KEY=VALUE       override a key (repeatable)
  --format text|json|csv  units are in the keys and columns
  -o FILE               write the result to a file (atomically)
  --jobs N              layouts at the same time (one per core)
  --seed N, --calibration FILE, --value-memory SIZE, --progress  as for run

Exit codes: 0 a layout fits, 1 none does, 2 usage, 3 bad input, 4 the time was up before one was
found, 130 interrupted.
)";

extern const std::string_view sweep_help = R"(
lockstep sweep FILE[:CASE] --vary KEY=V1,V2,..     run many settings, and show them side by side

  lockstep sweep train.yaml --vary trainer.devices=2,4,8 --vary trainer.precision=bf16-mixed,32-true
  lockstep sweep train.yaml --vary-file cases.csv --where 'memory.peak < 80 GB' --sort step_time
  lockstep sweep train.yaml --vary data.train.batch_size=8,16,32 --plot throughput.svg
  lockstep sweep train.yaml --vary .. --out 3.jsonl --resume --shard 3/8     on any machine
  lockstep sweep --merge *.jsonl --format csv -o all.csv

Every combination is a case, predicted as `run` does; each row has the line that runs it again.

  --vary KEY=V1,V2,..   values of a key (repeatable): all combinations are cases
  --vary-file FILE      a CSV file instead: keys in its first line, one case in each other
  --where CONDITION     show the rows that meet it (repeatable): results as in `expect`, varied
                        keys, case, verdict: --where "verdict == 'ok' and step_time < 1 s"
  --sort NAME[:desc]    by a result, a varied key or case
  --plot FILE           draw lines as SVG: --y over --x
  --x KEY               a varied key of numbers (the first one)
  --y RESULT            throughput
  --out FILE            append each row as a line of JSON as soon as it is there
  --resume              go on with --out, or begin it
  --shard I/N           only the I-th of N parts, from 1/N to N/N; needs --out
  --merge               join the files of all shards; runs nothing
  --set KEY=VALUE       override a key in every case (repeatable)
  --format text|json|csv  units are in the keys and columns
  -o FILE               write the result to a file (atomically)
  --jobs N              cases at the same time (one per core); the output does not depend on it
  --seed N, --calibration FILE, --time-limit SECONDS, --value-memory SIZE, --progress  as for run

Exit codes: 0 every case has a row, whatever it says, 2 usage, 3 bad input, 4 the time was up,
7 a file of rows is damaged, 130 interrupted.
)";

}  // namespace lockstep::cli
