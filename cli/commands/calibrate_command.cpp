// `calibrate`: runs small scenarios for real and keeps how long their operations took.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <thread>

#include "cli/commands/commands.hpp"
#include "io/calibration/calibration_file.hpp"
#include "model/core/ensure.hpp"
#include "rehearsal/calibrate/samples.hpp"
#include "rehearsal/calibrate/sweep.hpp"
#include "rehearsal/case_source.hpp"
#include "rehearsal/launch/launcher.hpp"
#include "rehearsal/launch/processor.hpp"
#include "rehearsal/launch/temporary_folder.hpp"
#include "rehearsal/progress.hpp"
#include "rehearsal/run/calibrated.hpp"
#include "rehearsal/run/process_run.hpp"

namespace lockstep::cli {

namespace {

/// Ends a calibration with an error and its remedy.
struct Stopped {
  std::string message;
  std::string remedy;
  ExitCode code = ExitCode::real_run_failed;
};

/// On what is measured.
struct Target {
  SweepOptions sweep;
  std::string program;  ///< of a rank
  GpuInventory gpus;    ///< empty on the CPU
  bool oversubscribe = false;
};

int32_t cores() { return static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency())); }

// Automatic takes the CPU: what is calibrated is never a matter of what happens to be there.
Target target_of(const Request& request) {
  Target target;
  target.sweep.on_gpus = request.device.wish == DeviceWish::cuda;
  target.sweep.is_quick = request.quick;
  target.oversubscribe = request.device.oversubscribe;
  if (target.sweep.on_gpus) {
    target.gpus = find_gpus();
    const auto gpus = static_cast<int32_t>(target.gpus.names.size());
    target.sweep.ranks = request.ranks > 0 ? request.ranks : std::max(1, gpus);
    const DeviceFacts facts{true, !rank_program(cuda_rank_program).empty(), target.sweep.ranks, 1};
    const DeviceChoice choice = choose_device(request.device, facts, target.gpus);
    if (!choice.cuda) {
      throw Stopped{choice.problem, choice.remedy, ExitCode::missing_capability};
    }
    target.program = rank_program(cuda_rank_program);
    return target;
  }
  target.sweep.ranks = request.ranks > 0 ? request.ranks : 2;
  target.program = rank_program();
  const Lack lack = lack_of_rank_programs(target.program, target.sweep.ranks, "use fewer --ranks");
  if (!lack.problem.empty()) {
    throw Stopped{lack.problem, lack.remedy, ExitCode::missing_capability};
  }
  return target;
}

/// What a run gave, and what it ran on: libraries, then device.
struct Measured {
  OneRun run;
  std::vector<std::string> basis;
};

void ensure_ended_well(const OneRun& run, const std::string& name) {
  if (!run.world_failure.empty()) {
    throw Stopped{fmt::format("{}: {}", name, run.world_failure), "lockstep doctor says more"};
  }
  if (!run.undecided.empty()) {
    throw Stopped{run.undecided, "allow more time with --time-limit, or measure less with --quick",
                  ExitCode::undecided};
  }
  for (const Problem& problem : run.problems) {
    if (problem.kind == Problem::Kind::unsupported) {
      throw Stopped{fmt::format("{}: {}", name, problem.message), problem.remedy,
                    ExitCode::missing_capability};
    }
  }
  ensure(run.ran, "a scenario of the calibration is valid");
  for (const RankEnd& end : run.result.ends) {
    if (run.result.hung || end.kind != RankEnd::Kind::finished) {
      throw Stopped{fmt::format("{}: a rank did not finish: {}", name, end.message),
                    "try again on a quieter machine"};
    }
  }
}

Measured measure_once(const SweepRun& sweep, const Target& target, const TemporaryFolder& folder,
                      const Deadline& deadline) {
  const std::string path = folder.path() + "/scenario.yaml";
  if (!(std::ofstream(path) << sweep.text << std::flush)) {
    throw RealRunFailed("no space for a scenario: " + path);
  }
  CaseSource source;
  source.path = path;
  const LoadedScenarios loaded = source.load();
  if (!loaded.ok()) {
    abort_for_bug(loaded.diagnostics.front().message.c_str(), std::source_location::current());
  }
  LaunchOptions launching;
  launching.program = target.program;
  launching.lists = true;
  launching.quiet = true;
  launching.deadline = &deadline;
  launching.on_gpus = target.sweep.on_gpus;
  launching.oversubscribe = target.oversubscribe;
  Measured measured;
  const RealWorld real = [&](const Preparation& preparation, const ProgramOfRank&) {
    RealRun run = launch(preparation, launching);
    measured.basis = run.basis;
    return run;
  };
  RunRequest request;
  request.world = World::processes;
  request.lists = true;
  request.deadline = &deadline;
  request.real = &real;
  measured.run = run_once(loaded.scenarios.front(), request);
  ensure_ended_well(measured.run, sweep.name);
  return measured;
}

double load_average() {
  double loads[1] = {0};
  return getloadavg(loads, 1) == 1 ? std::max(0.0, loads[0]) : 0;
}

std::string date_of_today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

CalibrationOrigin origin_of(const Target& target, const Request& request) {
  CalibrationOrigin origin;
  origin.lockstep_version = LOCKSTEP_VERSION;
  origin.backend = target.sweep.on_gpus ? "nccl" : "gloo";
  origin.host_cpu = processor_name();
  origin.cores = cores();
  origin.ranks = target.sweep.ranks;
  origin.date = date_of_today();
  origin.command = request.command_line;
  origin.load_average = load_average();
  origin.is_quick = target.sweep.is_quick;
  origin.device = origin.host_cpu.empty() ? "a CPU" : origin.host_cpu;
  origin.preset = "cpu";
  if (target.sweep.on_gpus) {
    origin.device = target.gpus.names.front();
    origin.preset = preset_of_gpu(origin.device);
    origin.driver = target.gpus.driver;
  }
  return origin;
}

Calibration measure_all(const Target& target, const Request& request, bool shows_progress) {
  constexpr double usual_limit_s = 900;
  const Deadline deadline(request.time_limit_s.value_or(usual_limit_s));
  const TemporaryFolder folder;
  Progress progress(shows_progress);
  CalibrationOrigin origin = origin_of(target, request);
  Samples samples;
  const std::vector<SweepRun> runs = sweep_of(target.sweep);
  progress.expect(runs.size(), "measurements");
  for (const SweepRun& sweep : runs) {
    progress.case_begins(sweep.name);
    const Measured measured = measure_once(sweep, target, folder, deadline);
    if (!measured.basis.empty()) {
      origin.libraries = measured.basis.front();
    }
    if (sweep.is_training) {
      samples.add_training(measured.run, sweep.name);
    } else {
      samples.add_communication(measured.run);
    }
    progress.case_ends();
  }
  Calibration calibration = samples.calibration();
  calibration.origin = std::move(origin);
  return calibration;
}

std::string summary(const Calibration& calibration, const std::string& file) {
  const CalibrationOrigin& origin = calibration.origin;
  const auto factors = [](const sim::RangeFactors& range) {
    return fmt::format("{:.2f} to {:.2f}", range.low, range.high);
  };
  std::string text = fmt::format(
      "calibrated on {} ({}), {} ranks, load {:.1f}\n"
      "  {} kinds of kernels, {} curves of communication\n"
      "  held-out trainings: measured / predicted {} (kernels), {} (communication)\n",
      origin.device, origin.libraries, origin.ranks, origin.load_average,
      calibration.kernels.size(), calibration.transfers.size(),
      factors(sim::compute_range(calibration)), factors(sim::communication_range(calibration)));
  if (!file.empty()) {
    text += fmt::format("next: lockstep run FILE --calibration {}\n", file);
  }
  return text;
}

}  // namespace

Answer calibrate_command(const Request& request, const Style& style) {
  try {
    const Target target = target_of(request);
    const Calibration calibration =
        measure_all(target, request, request.progress || style.progress);
    return {text_of(calibration), summary(calibration, request.output), ExitCode::ok};
  } catch (const Stopped& stopped) {
    return {"", fmt::format("error: {}\n   = {}\n", stopped.message, stopped.remedy), stopped.code};
  } catch (const RealRunFailed& error) {
    return {"", fmt::format("error: {}\n", error.what()), ExitCode::real_run_failed};
  }
}

}  // namespace lockstep::cli
