#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/program/run.hpp"
#include "model/trainer/prepare/prepare.hpp"

namespace lockstep::test {

/// What Lightning did with one scenario (docs/oracle.md).
struct LightningRecording {
  std::string name;
  std::string scenario;  ///< the text of a file
  nlohmann::json ranks;
};
/// All of tests/data/oracle/lightning, by name.
std::vector<LightningRecording> lightning_recordings();

/// What runs a program of ranks.
using WorldOfRanks = std::function<RunResult(const RunOptions&, const ProgramOfRank&)>;

/// The same scenario here: what stands in a recording for each rank, as far as it is known here.
struct OurTraining {
  std::vector<std::string> refused;  ///< why it did not run
  nlohmann::json ranks;
};
OurTraining our_training(const LightningRecording& recording, const WorldOfRanks& world);

/// The parts of a recording in which the ranks of both sides differ, each once: "operations" ..
/// Where a training step was rounded, numbers may differ by 64 units of round-off.
std::vector<std::string> differing_parts(const nlohmann::json& ours, const nlohmann::json& theirs);

}  // namespace lockstep::test
