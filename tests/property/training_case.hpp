#pragma once

#include <cstdint>
#include <ostream>
#include <string_view>

#include "model/network/network.hpp"
#include "model/strategy/data_parallel/ddp.hpp"
#include "tests/conformance/world.hpp"

namespace lockstep::test {

enum class Trained : uint8_t { single, dp, ddp };
inline constexpr std::string_view trained_names[] = {"single_device", "dp", "ddp"};

/// What is wrong with a training.
enum class TrainingFlaw : uint8_t {
  none,
  uneven_data,    ///< the last rank has one step more
  skipped_layer,  ///< the last rank leaves a layer out
  foreign_call,   ///< the first rank reduces its loss, the others do not
  raised,         ///< the last rank raises in its second step
};
inline constexpr std::string_view training_flaw_names[] = {"none", "uneven_data", "skipped_layer",
                                                           "foreign_call", "raised"};

/// What of the hidden part is run again in backward.
enum class Checkpointed : uint8_t { none, each_layer, together, by_fairscale };
inline constexpr std::string_view checkpointed_names[] = {"none", "each_layer", "together",
                                                          "by_fairscale"};

/// A training of a small network, as a value.
struct TrainingCase {
  Trained strategy = Trained::ddp;
  int32_t ranks = 1;
  int32_t devices = 1;  ///< of dp
  int32_t hidden = 4;   ///< width of the hidden layer
  bool batch_norm = false;
  Checkpointed checkpoint = Checkpointed::none;
  bool adam = false;
  int64_t batch = 2;
  int64_t steps = 2;
  int64_t accumulate = 1;  ///< micro-batches per step, all but the last without synchronisation
  DataParallelOptions options;
  TrainingFlaw flaw = TrainingFlaw::none;
};

/// The flaw, where this training can have it.
TrainingFlaw planted(const TrainingCase& training);
/// Whether the ranks are then out of step, so that there is a finding.
bool is_defect(const TrainingCase& training);

Network network_of(const TrainingCase& training);
/// Both outlive the run.
Program train_case(Rank& rank, const TrainingCase* training, const Network* network, Seen& seen);

std::ostream& operator<<(std::ostream& out, const TrainingCase& training);

}  // namespace lockstep::test
