#include "backend/rank_program/rank_main.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "backend/libtorch/runtime.hpp"
#include "backend/rank_program/folder_lock.hpp"
#include "io/report/checkpoint_file.hpp"
#include "io/report/journal_file.hpp"
#include "io/report/rank_report.hpp"
#include "rehearsal/case_source.hpp"
#include "rehearsal/elastic/attempt_scenario.hpp"
#include "rehearsal/elastic/folder_checkpoints.hpp"
#include "rehearsal/exit_code.hpp"
#include "rehearsal/launch/reports.hpp"
#include "rehearsal/run/one_run.hpp"
#include "rehearsal/run/output.hpp"
#include "rehearsal/text/printable.hpp"
#include "rehearsal/text/shell_words.hpp"

namespace lockstep::cli {

namespace {

constexpr int socket_of_the_store = 3;  ///< where the launcher leaves it for rank 0

struct Arguments {
  std::string scenario;
  std::vector<std::string> set;
  std::string report_folder = ".";
  double hang_after_s = 30;
  double join_timeout_s = 60;
  bool lists = false;
  std::string attempt;      ///< of an elastic launcher: the file that describes it
  int64_t launched_by = 0;  ///< the process that started it; 0: somebody else
  bool serve = false;
  bool oversubscribe = false;
};

struct Refusal {
  ExitCode code;
  std::string text;
};

Arguments parse(int argc, char** argv, const RankWorld& world) {
  Arguments arguments;
  CLI::App application(
      "One rank of a real run of a scenario. RANK, WORLD_SIZE, MASTER_ADDR and "
      "MASTER_PORT say which, or the variables of mpirun or srun.",
      world.program);
  auto* scenario = application.add_option("SCENARIO", arguments.scenario, "FILE[:CASE]");
  application.add_option("--set", arguments.set, "override a key (repeatable): KEY=VALUE")
      ->expected(1)
      ->take_all();
  application.add_option("--report-folder", arguments.report_folder,
                         "where rank-N.report is written");
  application
      .add_option("--hang-after", arguments.hang_after_s,
                  "seconds that this rank may wait before the run counts as hung")
      ->check(CLI::Range(0.01, 1e6));
  application
      .add_option("--join-timeout", arguments.join_timeout_s,
                  "seconds within which all ranks must join")
      ->check(CLI::Range(0.01, 1e6));
  application.add_flag("--lists", arguments.lists, "record the operands of operations");
  application.add_option("--attempt", arguments.attempt,
                         "the file in which lockstep exec describes a restart");
  application.add_option(
      "--launched-by", arguments.launched_by,
      "ends with this process, which started it; descriptor 3 of rank 0 listens");
  if (world.serve) {
    application
        .add_flag("--serve", arguments.serve,
                  "run one case after another for the launcher, over descriptor 3")
        ->excludes(scenario);
  }
  if (world.shares_devices) {
    application.add_flag("--oversubscribe", arguments.oversubscribe,
                         "let ranks share a GPU (slow; for experiments)");
  }
  try {
    application.parse(argc, argv);
    if (!arguments.serve && arguments.scenario.empty()) {
      throw CLI::RequiredError("SCENARIO");
    }
  } catch (const CLI::CallForHelp&) {
    std::fputs(application.help().c_str(), stdout);
    std::exit(0);
  } catch (const CLI::ParseError& error) {
    throw Refusal{ExitCode::usage, error.what()};
  }
  return arguments;
}

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Scenario load(const Arguments& arguments) {
  CaseSource source = split_case(arguments.scenario);
  source.set = arguments.set;
  LoadedScenarios loaded = source.load();
  if (!loaded.ok()) {
    throw Refusal{ExitCode::bad_input, loaded.diagnostics.front().message};
  }
  if (loaded.scenarios.size() != 1) {
    throw Refusal{ExitCode::usage,
                  fmt::format("{} has several cases: name one, FILE:CASE", source.path)};
  }
  return std::move(loaded.scenarios.front());
}

RankOrigin origin_of_this_process(const RankWorld& world) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return {fmt::format("LibTorch {}, {}", backend::libtorch_version(), world.library()),
          world.device(), host.data()};
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
}

std::string path_in(const Arguments& arguments, const std::string& name) {
  return (std::filesystem::path(arguments.report_folder) / name).string();
}

RealRun run_here(const Arguments& arguments, const RankWorld& world,
                 const backend::ProcessPlace& place, const Preparation& preparation,
                 const ProgramOfRank& program, RunIdentity& identity) {
  const int32_t world_size = preparation.options.world_size;
  if (world_size != place.world_size) {
    throw RealRunFailed(fmt::format(
        "the scenario has {} ranks, but {} were started: start {}, or change its devices or nodes",
        world_size, place.world_size, world_size));
  }
  backend::MeetingOptions options;
  options.place = place;
  options.launched = arguments.launched_by != 0;
  if (options.launched && place.rank == 0) {
    options.listening_socket = socket_of_the_store;
  }
  const auto deadline = milliseconds(arguments.hang_after_s);
  options.join_timeout = milliseconds(arguments.join_timeout_s);
  // Whoever still runs gets on or hangs until then.
  options.end_timeout = deadline + std::chrono::seconds(2);
  try {
    backend::Meeting meeting(options);
    identity = {meeting.run_number(), preparation.scenario->digest};
    JournalFile journal(path_in(arguments, journal_name(place.rank)), place.rank, world_size,
                        identity);
    RankOrder order{place,   deadline, arguments.oversubscribe, preparation.options, program,
                    journal, {}};
    if (arguments.launched_by != 0) {
      order.when_lost = [] { raise(SIGKILL); };  // a lost rank is a process that is gone
    }
    return {world.run(meeting, order), {}};
  } catch (const backend::WorldUnavailable& error) {
    throw RealRunFailed(error.what());
  } catch (const std::system_error& error) {
    throw RealRunFailed(fmt::format("the journal cannot be written: {}", error.what()));
  }
}

void write_report(const Arguments& arguments, const RankWorld& world, const OneRun& run,
                  int32_t rank, const RunIdentity& identity) {
  const RankLog& log = run.preparation.log->ranks[static_cast<size_t>(rank)];
  RankOrigin origin = origin_of_this_process(world);
  origin.identity = identity;
  const std::vector<uint8_t> report = encode_rank_report(run.result, log, rank, origin);
  write_atomically(path_in(arguments, report_name(rank)),
                   std::string(report.begin(), report.end()));
  // Also part of the report.
  std::error_code ignored;
  std::filesystem::remove(path_in(arguments, journal_name(rank)), ignored);
}

// Files of an earlier run must not be mistaken for this one's.
void clear_report_folder(const Arguments& arguments, int32_t rank) {
  std::error_code error;
  for (const std::string& name :
       {report_name(rank), journal_name(rank), journal_name(rank) + ".new"}) {
    if (!error) {
      std::filesystem::remove(path_in(arguments, name), error);
    }
  }
  if (error) {
    throw Refusal{ExitCode::real_run_failed,
                  fmt::format("reports cannot be left in {}: {}; give a folder that can be written "
                              "by --report-folder",
                              arguments.report_folder, error.message())};
  }
}

// Whoever started the ranks sees no report, only what they print.
void tell_hang(const Arguments& arguments, const Scenario& scenario, int32_t rank) {
  fmt::print(stderr, "rank {} waited {} s and gave up; next: lockstep compare {} --reports {}\n",
             rank, arguments.hang_after_s, shell_words(scenario),
             shell_word(arguments.report_folder));
}

// What came before this attempt, and the folder in which it leaves its checkpoints.
Attempt read_attempt(const Arguments& arguments) {
  std::ifstream file(arguments.attempt, std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  try {
    Attempt attempt = attempt_of(bytes);
    attempt.store = std::make_shared<FolderCheckpoints>(
        std::filesystem::path(arguments.attempt).parent_path().string());
    return attempt;
  } catch (const ReportError& error) {
    throw Refusal{ExitCode::real_run_failed,
                  fmt::format("{}: {}", arguments.attempt, error.what())};
  }
}

void run_rank(const Arguments& arguments, const RankWorld& world) {
  const backend::ProcessPlace place = backend::place_from(variable);
  Scenario scenario = load(arguments);
  Attempt attempt;
  if (!arguments.attempt.empty()) {
    attempt = read_attempt(arguments);
    if (attempt.number > 0) {
      scenario =
          later_attempt(scenario, {attempt.nodes, {}, {}}, attempt.past_faults, Time{}).scenario;
    }
  }
  std::error_code ignored;  // where it cannot be made, nothing can be left there: it says so
  std::filesystem::create_directories(arguments.report_folder, ignored);
  const FolderLock lock(arguments.report_folder, place.rank);
  clear_report_folder(arguments, place.rank);
  RunIdentity identity;
  const RealWorld real = [&](const Preparation& preparation, const ProgramOfRank& program) {
    return run_here(arguments, world, place, preparation, program, identity);
  };
  RunRequest request;
  request.world = World::processes;
  request.lists = arguments.lists;
  request.real = &real;
  request.attempt = attempt;
  const OneRun run = run_once(scenario, request);
  if (!run.world_failure.empty()) {
    throw Refusal{ExitCode::real_run_failed, run.world_failure};
  }
  if (!run.ran) {
    const std::string reason = run.problems.empty() ? run.undecided : run.problems.front().message;
    throw Refusal{ExitCode::missing_capability, reason};
  }
  write_report(arguments, world, run, place.rank, identity);
  if (run.result.hung && arguments.launched_by == 0) {
    tell_hang(arguments, scenario, place.rank);
  }
}

// The launcher may be gone before this process could ask to end with it.
void end_with(int64_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (launcher != 0 && getppid() != launcher) {
    fmt::print(stderr,
               "error: process {}, which started this rank, is not its parent: gone, or {}\n",
               launcher, "a program in between must exec the rank");
    std::_Exit(static_cast<int>(ExitCode::real_run_failed));
  }
}

int code_of_rank(int argc, char** argv, const RankWorld& world) {
  try {
    const Arguments arguments = parse(argc, argv, world);
    if (arguments.launched_by != 0 || arguments.serve) {
      end_with(arguments.launched_by);
    }
    backend::quieten_libtorch();
    backend::limit_kernel_threads(1);
    if (arguments.serve) {
      world.serve(origin_of_this_process(world));
    } else {
      run_rank(arguments, world);
    }
    return 0;
  } catch (const Refusal& refusal) {
    fmt::print(stderr, "error: {}\n", printable(refusal.text, "\n\t"));
    return static_cast<int>(refusal.code);
  } catch (const MissingCapability& error) {
    fmt::print(stderr, "error: {}\n", printable(error.what(), "\n\t"));
    return static_cast<int>(ExitCode::missing_capability);
  } catch (const backend::EnvironmentError& error) {
    fmt::print(stderr, "error: {}\n", printable(error.what(), "\n\t"));
    return static_cast<int>(ExitCode::usage);
  } catch (const RealRunFailed& error) {
    fmt::print(stderr, "error: {}\n", printable(error.what(), "\n\t"));
    return static_cast<int>(ExitCode::real_run_failed);
  } catch (const OutputError& error) {
    fmt::print(stderr, "error: {}\n", printable(error.what(), "\n\t"));
    return static_cast<int>(ExitCode::real_run_failed);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bug in {}: {}\n", world.program, error.what());
    return static_cast<int>(ExitCode::bug);
  }
}

}  // namespace

// Threads that wait for an answer that never comes may be left, and libraries of GPUs do not like
// to be taken down in the order of static objects: nothing is destroyed.
void main_of_rank(int argc, char** argv, const RankWorld& world) {
  const int code = code_of_rank(argc, argv, world);
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace lockstep::cli
