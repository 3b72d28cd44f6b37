#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "rehearsal/launch/real_run.hpp"

namespace lockstep::cli {

/// One scenario for the ranks of a fleet. Its seed is the scenario's own.
struct FleetCase {
  std::string path = "scenario.yaml";
  std::string text;           ///< what it holds; empty: it is read from disk
  std::string scenario_case;  ///< one of its cases; empty: it has none
  std::vector<std::string> set;
  std::chrono::milliseconds hang_after{10'000};
  bool lists = true;  ///< journals keep what operations read and write
};

/// Rank programs that stay up and take case after case: loaded once, and connected again only after
/// a case that did not end well. Every wait has a deadline; a rank that dies, or does not answer,
/// is lost to its case and started again. The ranks end with the fleet, and with its process.
class RankFleet {
 public:
  /// `program`: the rank program. Starts nothing yet.
  explicit RankFleet(std::string program);
  ~RankFleet();
  RankFleet(const RankFleet&) = delete;
  RankFleet& operator=(const RankFleet&) = delete;

  /// Runs the case, which `preparation` was made from, on as many ranks as it has. A rank that died
  /// counts as lost, and its journal says what it had done. Writes the ranks' logs into the
  /// preparation's. One at a time. Throws RealRunFailed.
  RealRun run(const FleetCase& asked, const Preparation& preparation);

  /// The processes by rank, of those that have been started; other threads may ask during a run.
  std::vector<pid_t> processes() const;
  /// How often ranks were connected again, and how often a rank was started.
  int64_t connections() const;
  int64_t starts() const;
  /// Where journals and meeting places lie.
  const std::string& folder() const;

 private:
  class Members;
  std::unique_ptr<Members> members_;
};

}  // namespace lockstep::cli
