#include "rehearsal/launch/launcher.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "io/report/checkpoint_file.hpp"
#include "properties/diagnosis/last_operation.hpp"
#include "rehearsal/exit_code.hpp"
#include "rehearsal/launch/child_processes.hpp"
#include "rehearsal/launch/gpu_inventory.hpp"
#include "rehearsal/launch/interruption.hpp"
#include "rehearsal/launch/occupancy.hpp"
#include "rehearsal/launch/reports.hpp"
#include "rehearsal/launch/shared_gpu.hpp"
#include "rehearsal/launch/temporary_folder.hpp"
#include "rehearsal/launch/work_meter.hpp"
#include "rehearsal/run/output.hpp"
#include "rehearsal/text/number_text.hpp"
#include "rehearsal/text/printable.hpp"
#include "rehearsal/text/shell_words.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;
using Clock = ChildProcesses::Clock;

// After the first rank has ended, another may still run into its own deadline, then waits for its
// peers as long again (`end_timeout` of the rank program), and has this much to come down.
constexpr std::chrono::seconds coming_down{10};
constexpr std::chrono::seconds end_grace{2};
constexpr std::chrono::seconds torchrun_grace{30};  // torch/distributed/elastic/multiprocessing
constexpr std::chrono::seconds meter_period{1};

/// A listening socket on a free port of 127.0.0.1, for the store of rank 0.
class ListeningSocket {
 public:
  ListeningSocket() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);  // how sockets take addresses
    if (descriptor_ < 0 || bind(descriptor_, generic, size) != 0 ||
        listen(descriptor_, SOMAXCONN) != 0 || getsockname(descriptor_, generic, &size) != 0) {
      const std::string reason = std::strerror(errno);
      if (descriptor_ >= 0) {
        close(descriptor_);
      }
      throw RealRunFailed("no port of 127.0.0.1 for the ranks to meet at: " + reason);
    }
    port_ = ntohs(address.sin_port);
  }
  ~ListeningSocket() { close(descriptor_); }
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;
  int descriptor() const { return descriptor_; }
  uint16_t port() const { return port_; }

 private:
  int descriptor_;
  uint16_t port_ = 0;
};

class Launch {
 public:
  Launch(const Preparation& preparation, const LaunchOptions& options)
      : preparation_(preparation),
        options_(options),
        children_([this](size_t rank, const std::string& line) {
          if (!options_.quiet) {
            fmt::print(stderr, "[rank {}] {}\n", rank, printable(line, "\t"));
          }
        }) {}

  RealRun run() {
    if (options_.attempt != nullptr) {
      const std::vector<uint8_t> bytes = encode_attempt(*options_.attempt);
      write_atomically(attempt_file(), std::string(bytes.begin(), bytes.end()));
    }
    for (int32_t rank = 0; rank < world_size(); ++rank) {
      start(rank);
    }
    std::optional<UtilizationSampler> utilization;
    if (options_.on_gpus) {
      utilization.emplace();
    }
    wait();
    tell_silent();
    RealRun real = gather_reports(folder_.path(), preparation_,
                                  [this](int32_t rank) { return end_of_silent(rank); });
    if (options_.on_gpus) {
      tell_of_gpus(real, utilization ? utilization->mean(gpus()) : std::nullopt);
    }
    return real;
  }

 private:
  std::string attempt_file() const {
    return (fs::path(options_.attempt_folder) / "attempt").string();
  }
  int32_t world_size() const { return preparation_.options.world_size; }
  size_t gpus() const {
    return static_cast<size_t>(world_size()) *
           static_cast<size_t>(preparation_.options.devices_per_rank);
  }

  void tell_of_gpus(RealRun& real, std::optional<double> utilization) const {
    if (options_.oversubscribe) {
      real.basis.emplace_back("GPUs shared by ranks");
    }
    const double occupancy = stream_occupancy(*real.result.journal, real.result.total_time);
    real.basis.push_back(fmt::format("streams busy {:.0f} %", 100 * occupancy));
    if (utilization) {
      real.basis.push_back(fmt::format("GPU utilisation {:.0f} % (NVML)", 100 * *utilization));
    }
  }

  void start(int32_t rank) {
    const Scenario& scenario = *preparation_.scenario;
    ChildCommand command;
    command.program = options_.program;
    command.arguments = {
        scenario.name.empty() ? scenario.file : scenario.file + ":" + scenario.name,
        "--report-folder",
        folder_.path(),
        "--hang-after",
        fmt::format("{}", std::chrono::duration<double>(options_.hang_after).count()),
        "--join-timeout",
        fmt::format("{}", std::chrono::duration<double>(options_.join_timeout).count())};
    if (options_.attempt != nullptr) {
      command.arguments.insert(command.arguments.end(), {"--attempt", attempt_file()});
    }
    for (const std::string& setting : scenario.settings) {
      command.arguments.insert(command.arguments.end(), {"--set", setting});
    }
    if (options_.lists) {
      command.arguments.push_back("--lists");
    }
    command.arguments.insert(command.arguments.end(), {"--launched-by", std::to_string(getpid())});
    if (options_.oversubscribe) {
      command.arguments.push_back("--oversubscribe");
    }
    if (rank == 0) {
      command.inherited_descriptor = socket_.descriptor();
    }
    const std::string number = std::to_string(rank);
    command.variables = {{"RANK", number},
                         {"LOCAL_RANK", number},
                         {"WORLD_SIZE", std::to_string(world_size())},
                         {"MASTER_ADDR", "127.0.0.1"},
                         {"MASTER_PORT", std::to_string(socket_.port())},
                         {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
    if (options_.attempt != nullptr) {
      command.variables.insert(
          command.variables.end(),
          {{"TORCHELASTIC_RESTART_COUNT", std::to_string(options_.attempt->number)},
           {"TORCHELASTIC_MAX_RESTARTS",
            std::to_string(preparation_.placement.launch.max_restarts)}});
    }
    if (options_.oversubscribe) {
      const auto shared = variables_of_shared_gpu(rank);
      command.variables.insert(command.variables.end(), shared.begin(), shared.end());
    }
    try {
      children_.start(command);
    } catch (const std::system_error& error) {
      throw RealRunFailed(fmt::format("rank {} cannot be started: {}", rank, error.what()));
    }
  }

  bool any_ended() const { return children_.first_ended().has_value(); }

  bool out_of_time() const { return options_.deadline != nullptr && options_.deadline->passed(); }
  bool gives_up() { return out_of_time() || interruption_.arrived(); }

  // The ranks have deadlines of their own; this one is for those that do not keep them.
  void wait() {
    children_.run_until(Clock::time_point::max(), [this] { return any_ended() || gives_up(); });
    if (!has_died()) {
      wait_for_the_others();
    }
    const bool stopped = !children_.all_ended();
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      ended_by_others_.push_back(children_.end(rank).ended);
    }
    children_.end_all(has_died() ? torchrun_grace : end_grace);
    if (stopped && interruption_.arrived()) {
      throw Interrupted(partial_report());
    }
    if (stopped && out_of_time()) {
      throw TimeLimitReached(*options_.deadline);
    }
  }

  // A worker of an elastic launcher, which then ends the others.
  bool has_died() const {
    const auto first = children_.first_ended();
    return options_.attempt != nullptr && first && children_.end(*first).signal != 0;
  }

  // A rank that works is not waiting, however long it takes. Where one could not join, nobody can.
  void wait_for_the_others() {
    const auto first = children_.first_ended();
    if (!first) {
      return;  // given up before any ended
    }
    const std::chrono::milliseconds grace =
        could_not_run(*first) ? std::chrono::milliseconds(end_grace)
                              : 2 * options_.hang_after + std::chrono::milliseconds(coming_down);
    std::vector<WorkMeter> meters;
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      meters.emplace_back(children_.process(rank));
    }
    auto last = Clock::now() + grace;
    while (!children_.all_ended() && !gives_up() && Clock::now() < last) {
      children_.run_until(std::min(last, Clock::now() + meter_period),
                          [this] { return gives_up(); });
      for (size_t rank = 0; rank < children_.size(); ++rank) {
        if (!children_.end(rank).ended && meters[rank].worked()) {
          last = Clock::now() + grace;
        }
      }
    }
  }

  bool could_not_run(size_t rank) const {
    const int code = children_.end(rank).exit_code;
    return children_.end(rank).signal == 0 &&
           (code == static_cast<int>(ExitCode::real_run_failed) ||
            code == static_cast<int>(ExitCode::usage) ||
            code == static_cast<int>(ExitCode::bad_input));
  }

  // The journals of ranks that were ended in the midst of it are files: `compare` reads them.
  std::string partial_report() {
    const RealRun partial = gather_reports(folder_.path(), preparation_, [](int32_t) {
      return RankEnd{RankEnd::Kind::lost, no_site, "ended by the interruption", false};
    });
    std::string text = fmt::format("interrupted: all {} were ended", plural(world_size(), "rank"));
    constexpr int32_t ranks_told = 16;
    for (int32_t rank = 0; rank < std::min(world_size(), ranks_told); ++rank) {
      const LastOperation last = last_operation(*partial.result.journal, rank);
      text += fmt::format("\n  rank {:<4} {}{}", rank, plural(last.count, "operation"),
                          last.name.empty() ? "" : ", the last " + last.name);
    }
    if (world_size() > ranks_told) {
      text += fmt::format("\n  and {} more", world_size() - ranks_told);
    }
    if (!any_journal()) {
      return text;
    }
    return text + fmt::format("\n  = their journals are kept: lockstep compare {} --reports {}",
                              shell_words(*preparation_.scenario), shell_word(folder_.keep()));
  }

  bool any_journal() const {
    for (int32_t rank = 0; rank < world_size(); ++rank) {
      if (fs::exists(fs::path(folder_.path()) / journal_name(rank)) ||
          fs::exists(fs::path(folder_.path()) / report_name(rank))) {
        return true;
      }
    }
    return false;
  }

  std::string how_it_ended(size_t rank) const {
    const ChildEnd& end = children_.end(rank);
    if (end.signal == 0) {
      return fmt::format("ended with exit code {}: {}", end.exit_code, end.last_line);
    }
    return fmt::format("ended by signal {} ({}){}", end.signal, strsignal(end.signal),
                       is_killed_for_memory(rank) ? ", probably by the kernel because this host is "
                                                    "out of memory"
                                                  : "");
  }

  // Neither the scenario nor this launcher sent the signal that the kernel sends then.
  bool is_killed_for_memory(size_t rank) const {
    return children_.end(rank).signal == SIGKILL && rank < ended_by_others_.size() &&
           ended_by_others_[rank] &&
           !preparation_.options.faults.contains(static_cast<int32_t>(rank));
  }

  void tell_silent() const {
    size_t silent = 0;
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      const ChildEnd& end = children_.end(rank);
      if (end.signal != 0 || end.exit_code != 0) {
        ++silent;
        if (!options_.quiet) {
          fmt::print(stderr, "[rank {}] {}\n", rank, printable(how_it_ended(rank)));
        }
      }
    }
    if (silent == children_.size() && !has_died()) {
      const size_t first = children_.first_ended().value_or(0);
      end_of_silent(static_cast<int32_t>(first));  // throws where it says more
      throw RealRunFailed(fmt::format("no rank finished; the first to end was rank {}, {}", first,
                                      how_it_ended(first)));
    }
  }

  RankEnd end_of_silent(int32_t rank) const {
    const ChildEnd& end = children_.end(static_cast<size_t>(rank));
    if (has_died() && !ended_by_others_[static_cast<size_t>(rank)]) {
      return {RankEnd::Kind::stuck, no_site, "ended by the launcher", false};
    }
    if (end.exit_code == static_cast<int>(ExitCode::missing_capability)) {
      throw CapabilityMissing(fmt::format("rank {}: {}", rank, end.last_line));
    }
    if (end.exit_code == static_cast<int>(ExitCode::real_run_failed) ||
        end.exit_code == static_cast<int>(ExitCode::bug)) {
      throw RealRunFailed(fmt::format("rank {}: {}", rank, end.last_line));
    }
    RankEnd lost;
    lost.kind = RankEnd::Kind::lost;
    lost.message = how_it_ended(static_cast<size_t>(rank));
    return lost;
  }

  const Preparation& preparation_;
  const LaunchOptions& options_;
  Interruption interruption_;
  TemporaryFolder folder_;
  ListeningSocket socket_;
  std::vector<bool> ended_by_others_;  ///< by rank: before this launcher ended those that were left
  ChildProcesses children_;            // last: ends the children before what they use is gone
};

}  // namespace

RealRun launch(const Preparation& preparation, const LaunchOptions& options) {
  return Launch(preparation, options).run();
}

std::string rank_program(const std::string& name) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path program = self.parent_path() / name;
  return !error && fs::is_regular_file(program, error) ? program.string() : "";
}

}  // namespace lockstep::cli
