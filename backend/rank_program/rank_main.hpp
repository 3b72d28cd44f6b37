#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>

#include "backend/libtorch/meeting.hpp"
#include "backend/process/environment.hpp"
#include "io/report/rank_report.hpp"
#include "model/program/run.hpp"

namespace lockstep::cli {

/// The task of one rank.
struct RankOrder {
  const backend::ProcessPlace& place;
  std::chrono::milliseconds deadline;
  bool oversubscribe = false;
  const RunOptions& options;
  const ProgramOfRank& program;
  JournalFollower& follower;          ///< keeps what the rank did, whatever becomes of it
  std::function<void()> when_lost{};  ///< called when a fault took the rank away; null: nothing
};

/// The parts of a rank program.
struct RankWorld {
  const char* program;                   ///< its name
  std::function<std::string()> library;  ///< that messages go over, with its version
  std::function<std::string()> device;
  std::function<RunResult(backend::Meeting&, const RankOrder&)> run;
  bool shares_devices = false;                     ///< takes --oversubscribe
  std::function<void(const RankOrigin&)> serve{};  ///< takes case after case; null: does not
};

/// This machine lacks what the world needs: exit 5.
class MissingCapability : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One rank of a real run: loads the scenario, meets the other ranks, runs the program of its rank
/// in its world, leaves a report, and ends the process.
[[noreturn]] void main_of_rank(int argc, char** argv, const RankWorld& world);

}  // namespace lockstep::cli
