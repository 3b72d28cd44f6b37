#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/version.hpp"
#include "model/network/network.hpp"
#include "model/network/optimizer/optimizer_settings.hpp"
#include "model/network/output_type.hpp"

namespace lockstep {

struct ReplicaLayout;

/// An optimizer, and what it works on.
struct OptimizerPlan : OptimizerSettings {
  /// Whether ranks that hold all parameters divide its state among them.
  enum class Sharding : uint8_t {
    none,
    zero_redundancy,             ///< torch's ZeroRedundancyOptimizer: sent parameter by parameter
    zero_redundancy_in_buckets,  ///< parameters_as_bucket_view: sent in one piece for each rank
  };
  Sharding sharding = Sharding::none;
  /// It holds the parameters of layers [first_layer, end_layer).
  size_t first_layer = 0;
  size_t end_layer = std::numeric_limits<size_t>::max();
  bool holds(size_t layer) const { return first_layer <= layer && layer < end_layer; }
};

/// The training of every rank, for any strategy. Shared by all ranks; outlives the run.
struct TrainingPlan {
  const Network* network = nullptr;
  /// Where `network` is a rank's part of it: the one that is trained; else null.
  const Network* whole_network = nullptr;
  DType parameter_dtype = DType::fp32;   ///< of parameters, gradients and optimizer state
  std::optional<DType> buffer_dtype{};   ///< of floating buffers; none: as parameters
  DType activation_dtype = DType::fp32;  ///< what products compute in; autocast keeps others wide
  bool autocast_of_cuda = true;          ///< whose lists hold under mixed precision; else the CPU's
  bool names_optimizer = true;           ///< false: the scenario has none, and one is assumed
  std::vector<OptimizerPlan> optimizers{OptimizerPlan()};  ///< no two hold the same layer
  uint64_t seed = 0;
  Version deepspeed{0, 19, 8};  ///< whose engine trains, where one does
  bool is_fitted = true;        ///< false: nothing is trained, but only evaluated
  int64_t batch_size = 0;       ///< of the training's loader, 1 where it has several; 0: not known
  int64_t accumulated_batches = 1;
  int32_t world_size = 0;  ///< ranks of the run; 0: not known
  int32_t node_ranks = 0;  ///< of them, in one node; 0: not known, -1: nodes differ
  bool is_on_gpu = true;
  /// Whether torch has streams for the devices: on CPUs from 2.7 on (pytorch pull request 145935).
  bool has_streams = true;
  /// FSDP1 with original parameters takes units of which a part is frozen: torch from 2.1 on
  /// (pytorch pull request 98221).
  bool takes_partly_frozen_units = true;
  /// Makes every tensor of a layer its own operand, as when values are computed.
  bool numerics = false;
  /// With numerics: the operations of a run with values, but no buffer carries values.
  bool valueless = false;
  bool barrier_is_all_reduce = true;  ///< NCCL has no barrier of its own
  /// Rank 0's parameters and buffers become everybody's also where nothing will be fitted:
  /// Lightning from 2.0.2 on (strategies/ddp.py, setup).
  bool synchronises_without_fit = true;
  /// DDP with find_unused_parameters counts a parameter as used that a backward under no_sync used:
  /// torch before 1.9 and from 2.4 on (pytorch pull requests 54981 and 124193).
  bool counts_use_under_no_sync = true;
  /// Schedules of pipelines divide gradients by the number of micro-batches unless asked not
  /// to: torch from 2.7 on (pytorch pull request 144352).
  bool pipelines_scale_gradients = true;
  /// torch from 1.12 on (pytorch pull request 75157): see PowerSgdOptions.
  bool orthogonalizes_batches_alone = true;
  /// Where a process drives several devices: their outputs come together, and the loss is that of
  /// the whole batch (training_step_end).
  bool loss_of_whole_batch = false;
  bool synchronises_batch_norm = false;  ///< `sync_batchnorm` of the Trainer
  bool integer_values = false;  ///< small whole initial values, so that sums are exact in any order
  /// What replicas of the network have in common; null: each makes its own.
  std::shared_ptr<const ReplicaLayout> layout{};

  ComputingTypes types() const { return {parameter_dtype, activation_dtype, autocast_of_cuda}; }
};

/// What a scenario says that the samples of a data set hold. Checked: a row for each sample, and
/// class indices and tokens in their ranges.
struct GivenSamples {
  struct Rows {
    int64_t width = 0;                                     ///< numbers of a sample
    std::shared_ptr<const std::vector<double>> numbers{};  ///< null: drawn from the seed
  };
  Rows inputs;
  Rows targets;
};

/// One micro-batch of one rank: which samples of the data set, in order.
struct Batch {
  std::vector<int64_t> samples;
  const GivenSamples* given = nullptr;  ///< null: every number is drawn; outlives the run
  int64_t size() const { return static_cast<int64_t>(samples.size()); }
};

/// How one forward or backward is asked for.
struct StepOptions {
  bool training = true;                ///< false: evaluation, no gradients will be asked for
  bool synchronise = true;             ///< false inside no_sync: gradients stay on this rank
  double loss_factor = 1;              ///< 1 / accumulated micro-batches
  std::vector<size_t> skipped_layers;  ///< that this forward does not run, ascending
  bool through_wrapper = true;  ///< false: past the strategy's wrapper, straight to the module
  bool enters_wrapper = true;   ///< false: a forward before it in this step has entered the wrapper
  /// Lightning's manual optimization: the exchange of gradients is prepared before each backward
  /// and not after the forward.
  bool manual = false;
  std::vector<size_t> modules;           ///< that this forward runs, ascending; empty: all layers
  std::optional<size_t> only_optimizer;  ///< no other parameters get a gradient: toggle_model
  std::optional<double> target;          ///< what the loss compares every output with
  /// d(loss) / d(each element of the output) of a loss that the program computes of the output
  /// itself: the backward begins with it. Empty: it begins at the network's loss.
  std::vector<double> output_gradient{};
  /// Every operation will be looked at: a world may leave none out.
  bool in_full = false;
};

}  // namespace lockstep
