#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/local_model/backward_pass.hpp"
#include "model/strategy/local_model/forward_history.hpp"
#include "model/strategy/local_model/replica_state.hpp"
#include "model/strategy/local_model/replica_update.hpp"
#include "model/strategy/local_model/routed_tokens.hpp"
#include "model/strategy/local_model/wanted_gradients.hpp"
#include "model/strategy/plan.hpp"

namespace lockstep {

/// One copy of the model on one device of one rank, and how its layers run there: what strategies
/// compose. All device work goes to the compute stream of the device, in program order.
class Replica {
 public:
  using Parameter = ReplicaParameter;
  using Buffer = ReplicaBuffer;

  Replica(const TrainingPlan& plan, DeviceId device);

  /// What it has from one step to the next, some of which is said here, too.
  ReplicaState& state() { return state_; }
  const ReplicaState& state() const { return state_; }
  void allocate(Rank& rank, uint64_t variant = 0) { state_.allocate(rank, variant); }
  bool is_allocated() const { return state_.is_allocated(); }
  bool holds(size_t parameter) const { return state_.holds(parameter); }
  const TrainingPlan& plan() const { return state_.plan(); }
  const Network& network() const { return state_.network(); }
  bool writes_values() const { return state_.writes_values(); }
  DeviceId device() const { return state_.device(); }
  StreamId compute() const { return state_.compute(); }
  std::vector<Parameter>& parameters() { return state_.parameters(); }
  const std::vector<Parameter>& parameters() const { return state_.parameters(); }
  const std::vector<size_t>& parameters_of(size_t layer) const {
    return state_.parameters_of(layer);
  }
  const std::vector<size_t>& trainable_of(size_t layer) const { return state_.trainable_of(layer); }
  std::vector<Slice> parameter_values() const { return state_.parameter_values(); }
  const std::vector<Buffer>& buffers() const { return state_.buffers(); }
  const Slice& loss() const { return state_.loss(); }
  void forget_gradient(Rank& rank, Parameter& parameter) {
    state_.forget_gradient(rank, parameter);
  }
  /// Frees all that it owns, forwards too. It may be allocated again.
  void release(Rank& rank);

  /// The last forward, and earlier ones that a backward may still go through.
  ForwardHistory& forwards() { return forwards_; }
  const ForwardHistory& forwards() const { return forwards_; }
  std::vector<size_t> layers_last_to_first() const { return forwards_.layers_last_to_first(); }
  bool adds_later(std::span<const BackwardPass> passes, size_t pass, size_t layer) const {
    return forwards_.adds_later(state_, passes, pass, layer);
  }

  /// Batch norms of trainings take the statistics of all ranks, as torch's SyncBatchNorm does.
  void synchronise_statistics() { synchronises_statistics_ = true; }
  /// Of the last layer, if it did so: the host waits for it before the next one.
  std::optional<Ticket> take_gathered() { return std::exchange(gathered_, std::nullopt); }

  /// Copies the batch to the device and runs all layers and the loss. Returns when the loss is
  /// there. What backward needs is kept when training.
  Ticket forward(Rank& rank, const Batch& batch, const StepOptions& options, After after = {});

  /// The same in steps, so that a strategy may act between layers: begin_forward, forward_layer for
  /// every layer of the network, end_forward. A layer that this forward leaves out does nothing.
  void begin_forward(Rank& rank, const Batch& batch, const StepOptions& options, After after = {});
  void forward_layer(Rank& rank, size_t layer, const StepOptions& options);
  /// Of a mixture whose experts ranks divide, before its forward_layer: sends the others how many
  /// rows they will get. The host must have settled the ticket: it sizes what arrives. None for
  /// other layers.
  Ticket announce_tokens(Rank& rank, size_t layer, const StepOptions& options);
  Ticket end_forward(Rank& rank, const StepOptions& options);
  bool runs(size_t layer, const StepOptions& options) const {
    return runs_layer(network(), layer, options);
  }

  /// The forward of some layers alone, in steps: begin_part, forward_layer for each, and end_part,
  /// or end_forward where the loss is behind them.
  struct Part {
    std::optional<Slice> input{};  ///< what the layer before gave; it outlives the forward
    bool has_loss = false;
  };
  void begin_part(Rank& rank, const Batch& batch, const StepOptions& options, const Part& part);
  void end_part(Rank& rank, const StepOptions& options);
  /// The backward of a part without loss begins with the gradient of its output, in memory that
  /// outlives it; backward() of its layers follows.
  void begin_backward_of_part(const Slice& gradient) { forwards_.now().gradient = gradient; }
  /// With numerics: what the backward of its layers has given for the one before. The caller frees
  /// it.
  Slice take_input_gradient();

  /// Whether the values of a forward decide which experts of a mixture get tokens.
  bool routes_tokens() const { return routed_.routes_tokens(); }
  /// The last forward has ended: reads which experts got tokens. One with parameters of its own
  /// that got none is no part of autograd's graph: its gradients stay as they were.
  void read_routing(Rank& rank) { routed_.read(rank, forwards_.now()); }
  /// Of all forwards of trainings so far.
  const std::vector<ExpertLoad>& expert_loads() const { return routed_.loads(); }

  /// The backward of the last forward, in pieces so that a strategy decides when each gradient is
  /// exchanged: first the loss, then the layers that ran, last to first. With an output's gradient
  /// in `options` the program has computed the loss.
  Ticket backward_of_loss(Rank& rank, const StepOptions& options, After after = {});
  /// Whether the parameter gets a gradient by the backward of the last forward, if its layer ran.
  bool wants_gradient(const Parameter& parameter) const {
    return lockstep::wants_gradient(state_, forwards_.now(), parameter);
  }
  /// Whether the backward of the layer makes a gradient of its input.
  bool passes_gradient_on(size_t layer) const {
    return forwards_.now().wants_input_gradient(layer);
  }
  /// Adds to the gradients of the layer's parameters, behind what runs again of its segment.
  /// With `input` what the other half needs is kept until it comes.
  Ticket backward(Rank& rank, size_t layer, BackwardHalf half = BackwardHalf::both);
  /// The second forward in steps, so that a strategy may act between its layers: those that run
  /// again before the backward of this layer, in order. Each must then run, before backward().
  std::vector<size_t> begin_recomputation(size_t layer);
  void recompute(Rank& rank, size_t layer);
  /// Frees what forward kept; called by the last backward, or to drop a forward.
  void forget_forward(Rank& rank) { forwards_.now().release(rank); }

  /// The steps of its optimizers.
  ReplicaUpdate update() { return ReplicaUpdate(state_); }
  Ticket optimizer_step(Rank& rank, const UpdateOptions& options, SiteId site,
                        const OwnedStep* owned = nullptr) {
    return update().step(rank, options, site, owned);
  }
  void forget_optimizer(Rank& rank) { state_.forget_optimizer(rank); }
  void zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
    update().zero_gradients(rank, optimizer, set_to_none);
  }

  /// The inputs and targets that the last forward moved to the device.
  Bytes batch_bytes() const {
    return forwards_.now().input.bytes() + forwards_.now().target.bytes();
  }
  /// The output shape of one sample in the last forward.
  const Shape& output_shape() const;
  Slice output() const {
    return forwards_.now().trace.empty() ? Slice{} : forwards_.now().trace.back().output;
  }

 private:
  ForwardRecord& begin_record(Rank& rank, const Batch& batch, const StepOptions& options);
  void forward_of_run(Rank& rank, LayerRun& run, const LayerTurn& turn);
  Ticket backward_of_run(Rank& rank, const LayerRun& run, const std::vector<Slice>& gradients,
                         BackwardHalf half);

  ReplicaState state_;
  ForwardHistory forwards_;
  RoutedTokens routed_;
  std::optional<Ticket> gathered_;
  bool synchronises_statistics_ = false;
};

}  // namespace lockstep
