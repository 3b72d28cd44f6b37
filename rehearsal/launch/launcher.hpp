#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "model/trainer/prepare/prepare.hpp"
#include "rehearsal/launch/real_run.hpp"
#include "rehearsal/run/stop.hpp"

namespace lockstep::cli {

/// How the ranks of a scenario are started as processes of this machine.
struct LaunchOptions {
  std::string program;  ///< the rank program
  std::chrono::milliseconds hang_after{10'000};
  std::chrono::milliseconds join_timeout{60'000};  ///< within which all ranks must have joined
  bool lists = false;                              ///< journals keep what operations read and write
  bool quiet = false;                  ///< their output is not passed on to standard error
  const Deadline* deadline = nullptr;  ///< of the whole run; outlives it
  bool on_gpus = false;
  bool oversubscribe = false;  ///< several ranks on one GPU
  /// Of an elastic launcher, outlives the launch; null: there is none. The folder is that of the
  /// attempt's store. When a rank has died, the others are ended as torchrun does: SIGTERM, and
  /// SIGKILL 30 s later.
  const Attempt* attempt = nullptr;
  std::string attempt_folder{};
};

/// Starts one process per rank, waits until all have reported, and gathers what they left. A rank
/// that died counts as lost, and its end says how. When one dies or has reported, the others get
/// twice `hang_after` and some seconds more; then they are ended in order. Writes the ranks' logs
/// into the preparation's. Throws RealRunFailed; TimeLimitReached when the deadline has passed;
/// Interrupted when the user asks for it (SIGINT, SIGTERM): ranks are ended, what they did is kept.
RealRun launch(const Preparation& preparation, const LaunchOptions& options);

/// The rank program of this name beside this program; empty when it was not built.
std::string rank_program(const std::string& name = "lockstep-rank");
inline constexpr const char* cuda_rank_program = "lockstep-rank-cuda";

}  // namespace lockstep::cli
