#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/program/buffer_table.hpp"
#include "model/strategy/pipeline_bubble.hpp"
#include "model/strategy/transfers.hpp"
#include "model/strategy/written_bytes.hpp"
#include "properties/transfer_counts.hpp"
#include "rehearsal/elastic/elastic_results.hpp"

namespace lockstep::cli {

/// Where a span of time of one rank went. Every moment counts once, for the first of these that is
/// under way: compute, optimizer, communication, data that the rank itself loads, host, offload,
/// data that workers load; else the rank is idle.
struct Breakdown {
  Time compute{};
  Time optimizer{};  ///< wherever it computes
  Time exposed_communication{};
  Time data{};
  Time host{};     ///< the rank's thread works, or other kernels of what is offloaded
  Time offload{};  ///< copies between GPU and host memory, but for batches
  Time drive{};    ///< the local drive is read or written
  Time idle{};
  Time optimizer_on_host{};  ///< of `optimizer`
  Time waiting{};            ///< of `idle`: the others have not come to a collective yet
  Time communication{};      ///< hidden or not
  Time busy{};               ///< the device executes something

  Time whole() const {
    return compute + optimizer + exposed_communication + data + host + offload + drive + idle;
  }
};

/// Of a step of a pipeline.
struct MicroBatches {
  int64_t all = 0;
  int64_t simulated = 0;  ///< the others repeat these
};

struct Prediction {
  Time total_time{};
  int64_t steps = 0;              ///< optimizer steps of rank 0
  int64_t simulated_steps = 0;    ///< of these; the others repeat earlier ones
  int64_t simulated_ranks = 0;    ///< the others do what one of these does
  std::optional<Time> step_time;  ///< steady: between the ends of two steps; none without a step
  /// Range from calibration: 90 % of the held-out steps are within it. Empty without calibration.
  std::optional<Time> step_time_low;
  std::optional<Time> step_time_high;
  std::optional<Time> total_time_low;
  std::optional<Time> total_time_high;
  /// Of these, each may exchange something else (Strategy::steps_of_cycle); 1: every step does the
  /// same; 0: what a step exchanges follows time.
  int64_t steps_of_cycle = 1;
  /// Over such a cycle, where the run has one; rates and prices are of it.
  std::optional<Time> mean_step_time;
  bool steady = false;             ///< false: there was one step only, counted from its start
  std::optional<Time> first_step;  ///< end of the first step, from the start of the run
  Breakdown breakdown;             ///< of a steady step, or of the whole run without one
  /// The part of a steady step in which the ranks of a pipeline idle, on average; 0 .. 1.
  std::optional<double> bubble;
  std::optional<PipelineBubble> ideal_bubble;  ///< were all its stages alike
  std::optional<MicroBatches> micro_batches;   ///< of a steady step, where some were left out
  std::optional<double> samples_per_s;
  std::optional<double> tokens_per_s;
  std::optional<double> mfu;  ///< 0 .. 1
  /// What came out above 1: the peak that the scenario states is less than what its layers use.
  std::optional<double> implausible_mfu;

  const std::optional<Time>& usual_step_time() const {
    return mean_step_time ? mean_step_time : step_time;
  }
};

/// When a rank first held its most: the place of its program, whose host thread accounts memory.
struct PeakMoment {
  enum class Phase : uint8_t { set_up, forward, backward, optimizer_step, evaluation, checkpoint };
  Phase phase = Phase::set_up;
  int64_t steps_before = 0;  ///< optimizer steps that the rank had taken

  bool operator==(const PeakMoment&) const = default;
};

/// What a rank sends in a step on average.
struct MeanSent {
  Bytes bytes{};
  int64_t steps = 0;  ///< over so many
};

struct RankResults {
  DeviceMemory memory;                ///< of this rank's fullest device
  Bytes host_peak{};                  ///< in host memory: batches, and what is offloaded
  Bytes drive_peak{};                 ///< on the local drive of its node
  std::optional<PeakMoment> peak_at;  ///< of `memory`; nothing where the journal does not say
  std::optional<PeakMoment> host_peak_at;
  Bytes reserve{};                       ///< beside it: CUDA context and NCCL (device_reserve.hpp)
  std::vector<TransferCount> transfers;  ///< of a steady step, or of the whole run without one
  std::optional<MeanSent> mean_sent;     ///< where not every step exchanges the same
  bool takes_steps = true;               ///< false of a parameter server, for instance
  std::vector<Transfer> movements;       ///< of the last step, by the strategy's labels
  /// That it wrote into the last checkpoint; nothing: it saved none.
  std::optional<WrittenBytes> checkpoint_bytes;
};

/// Results of variants of a training.
struct Advice {
  struct Change {
    std::string text;  ///< "gradient_as_bucket_view: true"
    Time step_time{};
    double samples_per_s = 0;
    Bytes peak{};
  };
  int64_t steps = 0;  ///< of each variant
  int64_t tried = 0;
  std::optional<Change> base;                 ///< the scenario itself, measured as its variants
  std::vector<Change> changes;                ///< those that help: fastest first
  std::optional<int64_t> largest_batch_size;  ///< of data.train that fits; 0: not even 1
  std::string why_no_batch_size;       ///< "raises ..": a short run failed, and not for memory
  std::string why_no_base;             ///< the same of the scenario itself
  std::string not_tried;               ///< why nothing was: "this run takes .."
  std::string stopped;                 ///< "the time limit was reached": more would be tried
  std::optional<Bytes> needed;         ///< by the fullest GPU, where it has not as much
  std::vector<Change> strategies;      ///< with which it fits, where it does with no batch
  std::vector<std::string> too_large;  ///< strategies with which it does not fit either
  bool recomputing_too_large = false;  ///< nor where they recompute all activations
};

/// What a run had given when it was stopped: of its first steps, no prediction of all.
struct PartialResults {
  int64_t steps = 0;                     ///< optimizer steps of rank 0
  std::optional<int64_t> planned_steps;  ///< nothing: the scenario does not say
  Time total_time{};                     ///< of what was simulated
  std::optional<Time> step_time;         ///< as Prediction::step_time
  Bytes memory_peak{};                   ///< of rank 0's fullest device
};

/// Results of a run, by the names that expectations and reports use.
struct Results {
  Prediction prediction;
  ByRank<RankResults> ranks;
  int64_t devices = 1;
  std::string strategy;
  std::optional<int64_t> device_batch_size;
  std::optional<int64_t> effective_batch_size;
  std::optional<double> learning_rate;
  std::optional<int64_t> samples_repeated;
  std::optional<int64_t> samples_missed;
  std::optional<std::map<std::string, double>> single_device;  ///< metrics of one device
  Advice advice;
  std::optional<ElasticResults> elastic;  ///< of a launcher that starts ranks again
  std::optional<PartialResults> partial;  ///< in place of all else, where a run was stopped

  /// Some steps, micro-batches or ranks were counted and not simulated, as others did the same.
  bool is_folded() const {
    return prediction.simulated_steps < prediction.steps || prediction.micro_batches.has_value() ||
           prediction.simulated_ranks < static_cast<int64_t>(ranks.size());
  }
};

}  // namespace lockstep::cli
