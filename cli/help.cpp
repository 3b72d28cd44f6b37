#include "cli/help.hpp"

namespace lockstep::cli {

namespace {

constexpr std::string_view program_help = R"(
lockstep rehearses a distributed training run before anyone pays for it.

  lockstep verify train.yaml        can it hang, mismatch, race, or log a wrong number?
  lockstep run train.yaml           how fast, how much memory, where does the step time go?

train.yaml is a scenario, one YAML file: what is trained, on what, with which user code.
  version: 1
  model: {preset: gpt2}
  trainer: {strategy: ddp, devices: 8, max_steps: 20}
  program:
    validation_step: [{log: {name: val_loss, value: loss}}]
    on_validation_epoch_end:
      - {if: is_global_zero, then: [{all_gather: {elements: 1280, as: outputs}}]}

Commands
  run       predict time and memory of a scenario
  verify    look for hangs and wrong numbers in every order that can happen
  exec      run the same scenario for real, a process a rank, and hold it against run
  compare   hold what ranks under torchrun, mpirun or srun have left against the simulation
  calibrate measure this machine, so that predictions rest on it
  test      judge every case of files and folders; for CI
  explain   a page about a finding (LS101), a result (step_time), the presets, or what guides
            claim (guides); with --env what each rank of a scenario is started with
  schema    the scenario format as JSON Schema, for editors
  doctor    what this machine can run for real, and what brings the rest

lockstep COMMAND --help shows a command. lockstep --version
Exit codes: 0 fine, 1 findings or failed expectations, 2 usage, 3 bad input, 4 undecided,
5 a capability is missing, 6 the real run failed for an outside reason, 70 a bug of ours,
74 the result could not be written.
)";

constexpr std::string_view run_help = R"(
lockstep run FILE[:CASE]     predict time and memory of a scenario

  lockstep run train.yaml
  lockstep run train.yaml:two_nodes --set trainer.devices=8 --timeline t.json
  lockstep run train.yaml --format json -o prediction.json

Without :CASE, every case of the file runs in order. Expectations about quantities are judged.

  --set KEY=VALUE       change the scenario, as often as wanted: --set data.batch_size=4
  --seed N              seed of data, values and ties
  --calibration FILE    predict with what lockstep calibrate has measured, and with a range
  --timeline FILE       Chrome trace of one case, for ui.perfetto.dev
  --format text|json    json is stable: seconds and bytes, with the unit in the key
  -o FILE               write the result to a file, complete or not at all
  --strict              warnings count as errors
  --time-limit SECONDS  give up after this time (exit 4)
  --value-memory SIZE   memory for the values of one case (4GiB; beyond it exit 4)
  --jobs N              cases at the same time; the output does not depend on it
  --progress            show it on stderr also where that is no terminal
  -v                    say what each figure rests on

Exit codes: 0 fine, 1 an error or a failed expectation, 3 bad input, 4 undecided, 5 not supported.
)";

constexpr std::string_view verify_help = R"(
lockstep verify FILE[:CASE]     look for hangs and wrong numbers

  lockstep verify train.yaml
  lockstep verify train.yaml:guarded --set 'verify.world_sizes=[2,8]'
  lockstep verify train.yaml --world threads

Runs every order that is really free, and says what was looked at and what was not. Expectations
in words (no_hang, finding LS101) and about metrics are judged.

  --world simulated|threads|processes  for real: a thread a rank over Gloo, or as exec does
  --set KEY=VALUE       change the scenario, as often as wanted
  --seed N              seed of data, values, ties and drawn faults
  --draw-faults N       inject N faults drawn from the seed, and print the lines that repeat them
  --format text|json    json: one object with findings, places and coverage
  -o FILE               write the result to a file, complete or not at all
  --strict              warnings count as errors
  --time-limit SECONDS  give up after this time (exit 4)
  --value-memory SIZE   memory for the values of one case (4GiB; beyond it exit 4)
  --jobs N              cases at the same time; the output does not depend on it
  --progress            show it on stderr also where that is no terminal

Exit codes: 0 nothing found, 1 an error was found, 3 bad input, 4 undecided, 5 not supported.
`lockstep explain LS101` tells more about a finding.
)";

constexpr std::string_view exec_help = R"(
lockstep exec FILE[:CASE]     run a scenario for real, then hold it against its simulation

  lockstep exec train.yaml
  lockstep exec train.yaml:guarded --hang-after 5
  lockstep exec train.yaml --format json -o real.json

Starts one process a rank on this machine: the same strategy code, kernels by LibTorch, messages by
Gloo on the CPU and by NCCL on GPUs. A rank that waits longer than --hang-after ends the run; the
journals of all ranks then go through the same diagnosis as in `verify`. The last lines compare:
outcome, calls, values, memory.

  --hang-after SECONDS  how long a rank may wait (10)
  --device auto|cpu|cuda  auto: GPUs where the scenario has some and this machine enough of them
  --oversubscribe       ranks may share a GPU: slow, for trying things out
  --calibration FILE    hold it against a prediction that rests on what calibrate measured
  --skip-values         compare no values: the simulation of a large model need not compute them
  --timeline FILE       Chrome trace of one case, as it really ran
  --set KEY=VALUE       change the scenario, as often as wanted
  --seed N              seed of data, values and ties
  --format text|json
  -o FILE               write the result to a file, complete or not at all
  --strict              warnings count as errors
  --time-limit SECONDS  give up after this time (exit 4)

Exit codes: 0 fine and equal, 1 an error was found or the worlds differ, 3 bad input, 4 undecided,
5 LibTorch or a GPU is missing (lockstep doctor), 6 the real run failed for an outside reason.
)";

constexpr std::string_view compare_help = R"(
lockstep compare FILE[:CASE] --reports FOLDER     a real run against its simulation

  torchrun --no-python --nproc-per-node 4 lockstep-rank train.yaml --report-folder reports
  lockstep compare train.yaml --reports reports

The ranks may also be started by mpirun or srun. Prints the findings of the real run, then whether
outcome, calls, values and memory are those of the simulation given the same choices.

  --reports FOLDER      where lockstep-rank left rank-0.report, rank-1.report ..
  --calibration FILE    as for exec
  --skip-values         as for exec
  --timeline FILE       Chrome trace of the real run
  --set KEY=VALUE       as the ranks were told
  --seed N              as the ranks were told
  --format text|json
  -o FILE               write the result to a file, complete or not at all

Exit codes: 0 equal, 1 an error was found or the worlds differ, 3 bad input, 6 a report is missing
or damaged.
)";

constexpr std::string_view calibrate_help = R"(
lockstep calibrate -o FILE     measure this machine, so that predictions rest on it

  lockstep calibrate -o this-machine.json
  lockstep run train.yaml --calibration this-machine.json
  lockstep exec train.yaml --calibration this-machine.json

Runs small trainings and communication for real, a process a rank, and keeps what kernels, messages
and submissions took, by size. One to two minutes; other work on the machine shows in the figures.
A scenario may name the file: cluster: {calibration: this-machine.json}, relative to itself.

  --ranks N             as many ranks as share this machine (2; on GPUs: one a GPU)
  --quick               fewer sizes and repetitions: seconds
  --device auto|cpu|cuda  auto: cpu
  --oversubscribe       ranks may share a GPU
  -o FILE               where the measurements go, complete or not at all; else standard output
  --time-limit SECONDS  give up after this time (900; exit 4)
  --progress            show it on stderr also where that is no terminal

Exit codes: 0 measured, 4 undecided, 5 LibTorch or a GPU is missing (lockstep doctor), 6 a real run
failed for an outside reason.
)";

constexpr std::string_view doctor_help = R"(
lockstep doctor     what this machine can run for real, and the command that brings the rest

  lockstep doctor
  lockstep doctor --format json
)";

constexpr std::string_view test_help = R"(
lockstep test FILE|FOLDER..     judge every case against what it expects

  lockstep test scenarios/
  lockstep test train.yaml:guarded --seed 3
  lockstep test scenarios/ --format junit -o report.xml

Judges all expectations of every *.yaml below the folders. An expected finding is a success; one
that no case expects is a failure.

  --jobs N              cases at the same time; the output does not depend on it
  --world simulated|threads|processes  for real: a thread a rank over Gloo, or as exec does
  --format text|json|junit
  --junit FILE          write JUnit too, whatever the format
  -o FILE               write the result to a file, complete or not at all
  --set KEY=VALUE       change every scenario
  --seed N              seed of data, values and ties
  --strict              warnings count as errors
  --time-limit SECONDS  give up after this time (exit 4)
  --value-memory SIZE   memory for the values of one case (4GiB; beyond it exit 4)
  --progress            show it on stderr also where that is no terminal
  -v                    print the findings of what did not pass

The last line is "N passed, N failed". Exit codes: 0 all passed, 1 a case failed, 3 bad input,
4 undecided, 5 something is not supported.
)";

constexpr std::string_view explain_help = R"(
lockstep explain [NAME]     a page about a finding, a result, the presets, or what guides claim

  lockstep explain LS101        what it means, what is seen, how to fix it, an example
  lockstep explain step_time    what an expectation about it compares
  lockstep explain trainer.devices
                                a key of a scenario, with the smallest one that shows it; so also
                                `trainer`, `fault.signal`, and statements: `all_gather`
  lockstep explain presets      known clusters, GPUs and models
  lockstep explain guides       what public guides say about several GPUs, right or wrong, and why;
                                with a NAME of the list also the scenario that shows it
  lockstep explain              lists all pages; all of these also with --format json
  lockstep explain ddp.yaml --env
                                the environment and start line of every rank, as launcher and
                                Lightning set them, and what the scenario's own `env` contradicts;
                                also with --format json, --set KEY=VALUE
)";

constexpr std::string_view schema_help = R"(
lockstep schema     the scenario format as JSON Schema

  lockstep schema -o scenario.schema.json

Then put this line at the head of a scenario, and editors complete and check it:
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
