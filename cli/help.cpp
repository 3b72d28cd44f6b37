#include "cli/help.hpp"

#include "cli/search_help.hpp"

namespace lockstep::cli {

namespace {

constexpr std::string_view program_help = R"(
lockstep simulates a distributed training run, described in YAML, before you pay for the GPUs.
  lockstep verify train.yaml        can it hang, mismatch, race, or log a wrong number?
  lockstep run train.yaml           how fast, how much memory, where does the step time go?
train.yaml is a scenario: one YAML file with the model, cluster, strategy and your hooks.
  version: 1
  model: {preset: gpt2}
  trainer: {strategy: ddp, devices: 8, max_steps: 20}
  program:
    validation_step: [{log: {name: val_loss, value: loss}}]
    on_validation_epoch_end:
      - {if: is_global_zero, then: [{all_gather: {elements: 1280, as: outputs}}]}

Commands
  run       predict time and memory of a scenario
  verify    look for hangs and wrong numbers under every possible ordering of events
  exec      run the scenario for real, one process per rank, and compare it with the prediction
  sweep     run many settings of a scenario, and show the cases side by side
  plan      search for the fastest way to divide a training among its GPUs, if it fits
  compare   compare the reports of ranks under torchrun, mpirun or srun with the simulation
  calibrate measure this machine, for predictions based on measurements
  collective predict what a collective of NCCL takes, size by size; compare it with nccl-tests
  accuracy  compare predictions with published throughputs
  test      check every case of files and folders against its expectations; for CI
  explain   print a page about a finding (LS101), result, key, guide; --env: each rank's environment
  presets   list devices, nodes and networks that a scenario may name, with figures and sources
  schema    print the scenario format as JSON Schema; doctor: what this machine can execute

lockstep COMMAND --help describes a command. lockstep --version prints the version.
Exit codes: 0 ok, 1 findings or unmet expectations, 2 usage, 3 bad input, 4 undecided,
5 not supported, 6 real run failed, 7 damaged report, 70 internal error, 74 result not written.
)";

constexpr std::string_view run_help = R"(
lockstep run FILE[:CASE]     predict time and memory of a scenario

  lockstep run train.yaml
  lockstep run train.yaml:two_nodes --set trainer.devices=8 --timeline t.json
  lockstep run train.yaml --format json -o prediction.json

Without :CASE, every case of the file runs in order. Expectations about quantities are judged.

  --set KEY=VALUE       override a key (repeatable): --set data.batch_size=4
  --seed N              seed of data, values and tie-breaking
  --calibration FILE    predict from measurements of lockstep calibrate, with an error range
  --strategies all      one table: the same training under every strategy, or under A,B,..
  --timeline FILE       write a Chrome trace of one case, for ui.perfetto.dev
  --timeline-steps A-B  steps, from 0, that it shows though they repeat others: 5000-5010
  --logs FOLDER         write what loggers and monitors would have recorded: CSV and TensorBoard
  --report FILE         write one HTML page: answers, a step, memory, layers, utilization, basis
  --plot FILE           write an SVG: a step, memory and utilization over time
  --format text|json    json has stable keys; values in seconds and bytes, with the unit in the key
  -o FILE               write the result to a file (atomically)
  --strict              warnings count as errors
  --time-limit SECONDS  give up after this time (exit 4)
  --value-memory SIZE   memory for the values of one case (4GiB; beyond it exit 4)
  --jobs N              cases at the same time; the output does not depend on it
  --progress            show it on stderr also where that is no terminal
  -v                    show the source of each figure

Exit codes: 0 ok, 1 an error or a failed expectation, 3 bad input, 4 undecided, 5 not supported.
)";

constexpr std::string_view verify_help = R"(
lockstep verify FILE[:CASE]     look for hangs and wrong numbers

  lockstep verify train.yaml
  lockstep verify train.yaml:guarded --set 'verify.world_sizes=[2,8]'
  lockstep verify train.yaml --world threads

Explores every possible ordering of events, and reports what was checked and what was not.
Evaluates expectations in words (no_hang, finding LS101) and about metrics.

  --world simulated|threads|processes  threads: real ranks over Gloo; processes: as exec does
  --set KEY=VALUE       override a key (repeatable)
  --seed N              seed of data, values, tie-breaking and drawn faults
  --draw-faults N       inject N faults drawn from the seed, and print how to repeat them
  --all-steps           simulate every step, and compute the values of all, however long it takes
  --strategies all      one table: the same training under every strategy, or under A,B,..
  --format text|json    json: one object with findings, places and coverage
  -o FILE               write the result to a file (atomically)
  --strict              warnings count as errors
  --time-limit SECONDS  give up after this time (exit 4)
  --value-memory SIZE   memory for the values of one case (4GiB; beyond it exit 4)
  --jobs N              cases at the same time; the output does not depend on it
  --progress            show it on stderr also where that is no terminal

Exit codes: 0 nothing found, 1 an error was found, 3 bad input, 4 undecided, 5 not supported.
`lockstep explain LS101` describes a finding.
)";

constexpr std::string_view exec_help = R"(
lockstep exec FILE[:CASE]     run a scenario for real, then compare it with its simulation

  lockstep exec train.yaml
  lockstep exec train.yaml:guarded --hang-after 5
  lockstep exec train.yaml --format json -o real.json

Starts one process per rank on this machine. It runs the same strategy code, with LibTorch kernels
and messages by Gloo (CPU) or NCCL (GPU). A rank that waits longer than --hang-after ends the run.
The recorded calls of all ranks are then diagnosed as by `verify`. The last lines compare outcome,
calls, values and memory with the simulation.

  --hang-after SECONDS  how long a rank may wait (10)
  --join-timeout SECONDS  how long all ranks may take to start and to find one another (60)
  --device auto|cpu|cuda  auto: GPUs if the scenario uses them and this machine has enough
  --oversubscribe       let ranks share a GPU (slow; for experiments)
  --calibration FILE    compare with a prediction based on this calibration
  --skip-values         do not compare values, for models that are too large to compute twice
  --timeline FILE       write a Chrome trace of one case, as measured
  --set KEY=VALUE       override a key (repeatable)
  --seed N              seed of data, values and tie-breaking
  --format text|json
  -o FILE               write the result to a file (atomically)
  --strict              warnings count as errors
  --time-limit SECONDS  give up after this time (exit 4)

Exit codes: 0 ok and equal, 1 an error was found or the real run differs from the simulation,
3 bad input, 4 undecided, 5 LibTorch or a GPU is missing (lockstep doctor), 6 the real run failed
for an external reason.
)";

constexpr std::string_view compare_help = R"(
lockstep compare FILE[:CASE] --reports FOLDER     compare a real run with its simulation

  torchrun --no-python --nproc-per-node 4 lockstep-rank train.yaml --report-folder reports
  lockstep compare train.yaml --reports reports

The ranks may also be started by mpirun or srun. Prints the findings of the real run, then whether
its outcome, calls, values and memory equal those of the simulation.

  --reports FOLDER      the folder with rank-0.report, rank-1.report .. of lockstep-rank
  --calibration FILE    as for exec
  --skip-values         as for exec
  --timeline FILE       write a Chrome trace of the real run
  --set KEY=VALUE       as given to the ranks
  --seed N              as given to the ranks
  --format text|json
  -o FILE               write the result to a file (atomically)

Exit codes: 0 equal, 1 an error was found or the real run differs from the simulation, 3 bad input,
6 a report is missing or of another version, 7 a report or journal is damaged.
)";

constexpr std::string_view calibrate_help = R"(
lockstep calibrate -o FILE     measure this machine, for predictions based on measurements

  lockstep calibrate -o this-machine.json
  lockstep run train.yaml --calibration this-machine.json
  lockstep exec train.yaml --calibration this-machine.json

Runs small trainings and communication for real, one process per rank, and stores how long kernels,
messages and submissions took, by size. This takes one to two minutes. Other work on the machine
distorts the results. A scenario may name the file: cluster: {calibration: this-machine.json}; the
path is relative to the scenario.

  --ranks N             number of ranks on this machine (default 2; on GPUs one per GPU)
  --quick               fewer sizes and repetitions; takes seconds
  --device auto|cpu|cuda  auto is cpu
  --oversubscribe       let ranks share a GPU
  -o FILE               write the measurements to a file (atomically); default: standard output
  --time-limit SECONDS  give up after this time (900; exit 4)
  --progress            show progress even if stderr is not a terminal

Exit codes: 0 measured, 4 undecided, 5 LibTorch or a GPU is missing (lockstep doctor), 6 a real run
failed for an external reason.
)";

constexpr std::string_view doctor_help = R"(
lockstep doctor     check what this machine can execute, and how to install what is missing

  lockstep doctor
  lockstep doctor --format json
)";

constexpr std::string_view test_help = R"(
lockstep test FILE|FOLDER..     check every case against its expectations

  lockstep test scenarios/
  lockstep test train.yaml:guarded --seed 3
  lockstep test scenarios/ --format junit -o report.xml

Evaluates all expectations of every *.yaml file below the folders. An expected finding is a success;
an error that the case does not expect is a failure.

  --jobs N              number of cases to run in parallel; does not change the output
  --world simulated|threads|processes  threads: real ranks over Gloo; processes: as exec does
  --covering            leave out cases whose calls, layers and findings other cases have, too
  --format text|json|junit
  --junit FILE          also write JUnit XML
  -o FILE               write the result to a file (atomically)
  --set KEY=VALUE       override a key in every scenario (repeatable)
  --seed N              seed of data, values and tie-breaking
  --strict              warnings count as errors
  --time-limit SECONDS  give up after this time (exit 4)
  --value-memory SIZE   memory for the values of one case (4GiB; beyond it exit 4)
  --progress            show it on stderr also where that is no terminal
  -v                    print the findings of what did not pass

The last line is "N passed, N failed". Exit codes: 0 all passed, 1 a case failed, 3 bad input,
4 undecided, 5 something is not supported.
)";

constexpr std::string_view collective_help = R"(
lockstep collective KIND --cluster CLUSTER     predict what a collective of NCCL takes

  lockstep collective all_reduce --cluster dgx-h100 --nodes 2 --sizes 8B..4GiB
  lockstep collective all_gather --cluster train.yaml:two_nodes --env NCCL_ALGO=Ring
  lockstep collective all_reduce --cluster dgx-a100 --against nccl-tests.txt

Prints the columns of nccl-tests (out of place) and the algorithm and protocol that NCCL chooses.
KIND: all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, gather or scatter.

  --cluster CLUSTER     a preset (lockstep explain presets), a map '{preset: dgx-a100, nics: 4}', or
                        a scenario FILE[:CASE], whose cluster, env and versions count
  --nodes N             number of nodes
  --ranks N             number of GPUs (all of all nodes)
  --sizes A..B          powers of two of A (8B..4GiB), or a list: 1MiB,100MB; of the larger side,
                        which an all_gather writes
  --env NAME=VALUE      a variable of NCCL (repeatable): NCCL_ALGO, NCCL_PROTO, NCCL_MAX_CTAS, ..
  -g, --gpus-per-process N  GPUs that one process drives (1); as -g of nccl-tests
  --set KEY=VALUE       override a key of the scenario (repeatable)
  --against FILE        compare with measurements: the output of nccl-tests, or CSV with the columns
                        size_bytes,time_us; prints the error of each size and the median
  --uncorrected         what NCCL's tuner counts, without the correction fitted to measurements
  --format text|json    times in seconds and rates in bytes per second, with the unit in the key
  -o FILE               write the result to a file (atomically)

Exit codes: 0 ok, 2 usage, 3 bad input. What goes beyond all measurements is reported as such.
)";

constexpr std::string_view accuracy_help = R"(
lockstep accuracy [FOLDER]     compare predictions with published throughputs

  lockstep accuracy data/throughput
  lockstep accuracy data/throughput --plot accuracy.svg --write docs/accuracy.md
  lockstep accuracy data/throughput --scenario nanogpt_llmc-001

Predicts every row of the CSV files that a scenario can express (docs/accuracy.md lists the
columns) and prints the errors by source, software, GPU, model, strategy and precision, and why
other rows are left out.

  --plot FILE           draw predicted over measured throughput (SVG)
  --write FILE          write the page docs/accuracy.md
  --scenario ROW        print the scenario of a row instead
  --software PROFILE    predict all rows with this value of versions.kernels, or none: data sheets
  --format text|json|csv  csv has a line for each row
  --jobs N              rows at the same time (one per core); the output does not depend on it
  --progress            show it on stderr also where that is no terminal
  --time-limit SECONDS  stop predicting after this time
  -o FILE               write the result to a file (atomically)

Exit codes: 0 ok, 2 usage, 3 a file is wrong, 5 a row cannot be expressed (--scenario).
)";

constexpr std::string_view explain_help = R"(
lockstep explain [NAME]     print a page about a finding, result, key, statement, class or preset

  lockstep explain LS101        meaning, symptoms, fix and an example
  lockstep explain step_time    what an expectation about it compares
  lockstep explain trainer.devices
                                a key of the scenario format, with a minimal example; likewise
                                `trainer`, `fault.signal`, and statements such as `all_gather`
  lockstep explain presets      known clusters, GPUs and models
  lockstep explain codes        all codes of findings, with level and title
  lockstep explain guides       common claims in multi-GPU guides, checked; with a NAME of the
                                list also the scenario that shows it
  lockstep explain              list all pages; every page is also available as --format json
  lockstep explain ddp.yaml --env
                                show each rank's environment and launch command, and where the
                                scenario's own `env` contradicts them; also with --format json,
                                --set KEY=VALUE
)";

constexpr std::string_view presets_help = R"(
lockstep presets [devices|nodes|networks]     list what a scenario may name

  lockstep presets networks         parameters, FLOPs, arguments and source of each network
  lockstep presets --format json    all three lists; sizes in bytes, rates in bytes per second

`lockstep explain NAME` shows one of them with a scenario. GPUs and machines under other names, and
what exists and is not modelled, are listed by `lockstep explain presets`.
)";

constexpr std::string_view schema_help = R"(
lockstep schema     print the scenario format as JSON Schema

  lockstep schema -o scenario.schema.json

Put this line at the top of a scenario; editors then complete and check its keys:
  # yaml-language-server: $schema=scenario.schema.json
)";

std::string_view page_of(std::string_view command) {
  if (command == "run") {
    return run_help;
  }
  if (command == "verify") {
    return verify_help;
  }
  if (command == "exec") {
    return exec_help;
  }
  if (command == "compare") {
    return compare_help;
  }
  if (command == "calibrate") {
    return calibrate_help;
  }
  if (command == "doctor") {
    return doctor_help;
  }
  if (command == "test") {
    return test_help;
  }
  if (command == "plan") {
    return plan_help;
  }
  if (command == "sweep") {
    return sweep_help;
  }
  if (command == "collective") {
    return collective_help;
  }
  if (command == "presets") {
    return presets_help;
  }
  if (command == "accuracy") {
    return accuracy_help;
  }
  if (command == "explain") {
    return explain_help;
  }
  return command == "schema" ? schema_help : program_help;
}

}  // namespace

std::string_view help_of(std::string_view command) {
  const std::string_view page = page_of(command);
  return page.substr(1);  // the line feed behind the quote
}

}  // namespace lockstep::cli
