#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/expression/expression.hpp"
#include "model/scenario/cluster_spec.hpp"
#include "model/scenario/data_spec.hpp"
#include "model/scenario/expectation.hpp"
#include "model/scenario/fault_spec.hpp"
#include "model/scenario/model_spec.hpp"
#include "model/scenario/object.hpp"
#include "model/scenario/program_spec.hpp"
#include "model/scenario/trainer_spec.hpp"

namespace lockstep {

/// A piece of an environment variable: text, or the value of an expression on each rank.
struct EnvironmentPart {
  std::string text;
  std::optional<Expression> expression;  ///< instead of `text`
};

/// `env: {NODE_RANK: "{node_rank + 1}"}`.
struct EnvironmentVariable {
  std::string name;
  std::string value;                   ///< as written
  std::vector<EnvironmentPart> parts;  ///< the value taken apart, in order
  SourcePlace place{};
};

/// `versions: {torch: "2.6"}`.
struct LibraryVersion {
  std::string library;
  std::string version;
  SourcePlace place{};
};

struct NamedMetric {
  std::string name;
  Object metric;
};

/// One case of a scenario file in typed form: what the user wrote, checked as far as the file alone
/// can be, with nothing filled in (`with_defaults` does that).
struct Scenario {
  std::string file;  ///< as given to the loader
  std::string name;  ///< of the case; empty when the file has none
  /// Overrides of the command line ("a.b=v"); with file and name they load the same scenario again.
  std::vector<std::string> settings;
  /// Digest of the keys that decide what ranks do; equal if they are (io/scenario/load/digest).
  uint64_t digest = 0;
  int64_t version = 1;
  std::vector<LibraryVersion> versions;
  Given<int64_t> seed;
  std::vector<EnvironmentVariable> env;
  std::optional<Object> launcher;
  std::optional<ClusterSpec> cluster;
  std::optional<ProcessGroupSpec> process_group;
  std::optional<ModelSpec> model;
  std::optional<DataSpec> data;
  std::vector<Object> optimizers;
  std::vector<Object> schedulers;
  std::optional<TrainerSpec> trainer;
  std::vector<NamedMetric> metrics;
  std::optional<ProgramSpec> program;
  std::vector<FaultSpec> faults;
  std::optional<VerifySpec> verify;
  std::vector<Expectation> expectations;

  /// A bare program of `cluster.ranks` ranks, without a trainer.
  bool is_bare_program() const { return cluster && cluster->ranks; }
};

}  // namespace lockstep
