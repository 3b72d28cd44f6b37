#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/core/units.hpp"
#include "model/strategy/local_model/loss_scale.hpp"
#include "model/strategy/saved_tensor.hpp"
#include "model/trainer/data/used_samples.hpp"

namespace lockstep {

/// What a callback or a scheduler writes into a checkpoint, in an order of its own.
struct SavedObject {
  std::vector<double> numbers;
  std::vector<std::string> texts;
  bool operator==(const SavedObject&) const = default;
};

/// Where a fit that continues from a checkpoint begins.
struct FitPosition {
  int64_t global_step = 0;
  int64_t batches_that_stepped = 0;
  int64_t epoch = 0;
  int64_t batch = 0;    ///< of that epoch
  int64_t batches = 0;  ///< that began, over all epochs
  bool operator==(const FitPosition&) const = default;
};

/// Samples of one training epoch that a rank has trained on.
struct TrainedSamples {
  int64_t epoch = 0;
  UsedSamples samples;
};

/// What one rank has put into a checkpoint of a training, and what is known of it beside.
struct SavedTraining {
  std::string file;
  std::vector<std::string> files;  ///< on the disk then, this one among them
  int64_t number = 0;              ///< of the checkpoints `last` of its attempt, from 1
  bool weights_only = false;
  Bytes bytes{};  ///< of the whole file
  FitPosition position;
  std::vector<double> learning_rates;          ///< by optimizer
  std::vector<SavedObject> schedulers;         ///< in their order
  std::vector<SavedObject> callbacks;          ///< in the order in which the trainer calls them
  std::vector<SavedTensor> parameters;         ///< with the optimizer's state; empty without values
  std::vector<Values> buffers;                 ///< empty without values
  std::optional<LossScale::State> loss_scale;  ///< of the precision plugin's GradScaler
  std::vector<TrainedSamples> trained;         ///< by this rank, in this attempt
};

}  // namespace lockstep
