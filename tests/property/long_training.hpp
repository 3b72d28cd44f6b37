#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <ostream>
#include <string>

namespace lockstep::test {

/// A training as a value; each text is a part of the scenario.
struct LongTraining {
  int32_t ranks = 2;
  std::string layers = "{Linear: [6, 9]}, ReLU, {Linear: [9, 5]}, {Linear: [5, 3]}";
  std::string cluster;
  std::string accelerator;
  std::string strategy;
  std::string trainer;
  std::string loader;
  std::string validation;
  std::string program;
  std::string more;  ///< further keys of the scenario
  int64_t batches = 20;
  int64_t batch = 2;
  std::string own_size;         ///< an expression of the rank in place of `batch`, or empty
  bool counts_batches = false;  ///< `batches` in place of `samples`
  std::string own_batches;      ///< what an expression of the rank adds to these, or empty
  int64_t rest = 0;             ///< samples of the last batch that are missing
  int64_t epochs = 3;

  /// The scenario. `all_steps`: none is left out.
  std::string text(bool all_steps) const;
};
std::ostream& operator<<(std::ostream& out, const LongTraining& training);
rc::Gen<LongTraining> long_trainings();

}  // namespace lockstep::test
