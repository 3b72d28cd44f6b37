#pragma once

#include <cstdint>
#include <string>

#include "io/table/throughput_table.hpp"

namespace lockstep::cli {

/// Groups by which errors are reported.
struct RowClass {
  std::string source{};
  std::string software{};  ///< the profile of `versions.kernels` that stands for its framework
  std::string gpu{};       ///< the preset, or the name as printed
  std::string family{};    ///< "ResNet", "BERT", "GPT"
  std::string strategy{};  ///< "single_device", "ddp", .., or the row's words
  std::string precision{};
  int64_t gpus = 1;
  int64_t nodes = 1;
};

/// A row of published throughput as a scenario, or why the format cannot express it.
struct RowScenario {
  RowClass group{};
  std::string yaml{};             ///< empty: `why_not` says why
  std::string why_not{};          ///< without numbers that differ from row to row
  double samples_per_s = 0;       ///< measured, of all GPUs
  bool is_data_parallel = false;  ///< one GPU, dp or ddp: what the format is expected to express
};
RowScenario scenario_of(const ThroughputRow& row);

}  // namespace lockstep::cli
