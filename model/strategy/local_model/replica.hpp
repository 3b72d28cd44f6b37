#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/local_model/backward_pass.hpp"
#include "model/strategy/local_model/batch_values.hpp"
#include "model/strategy/local_model/context_run.hpp"
#include "model/strategy/local_model/expert_load.hpp"
#include "model/strategy/local_model/expert_run.hpp"
#include "model/strategy/local_model/optimizer.hpp"
#include "model/strategy/local_model/replica_layout.hpp"
#include "model/strategy/local_model/sample_comparison.hpp"
#include "model/strategy/local_model/skip_connection.hpp"
#include "model/strategy/local_model/tensor_ranks.hpp"
#include "model/strategy/plan.hpp"
#include "model/strategy/update_options.hpp"

namespace lockstep {

/// One copy of the model on one device of one rank, and how its layers run there: what strategies
/// compose. All device work goes to the compute stream of the device, in program order.
class Replica {
 public:
  /// A parameter tensor, in definition order.
  struct Parameter {
    ParameterPlace place;
    OptimizedTensor tensor;  ///< value, gradient (no_buffer while it is None), optimizer state
    bool trainable = true;
    bool gradient_is_view = false;  ///< the gradient's memory belongs to a DDP bucket
  };
  /// A state that is no parameter: running statistics, counters.
  struct Buffer {
    size_t layer = 0;
    Slice value;
  };

  Replica(const TrainingPlan& plan, DeviceId device);

  /// A stage of a pipeline: only layers for which `layers` says so have parameters and buffers
  /// here, a weight that such a layer is tied to among them. The others never get memory. Before
  /// any allocation.
  void hold_only(const std::vector<bool>& layers);
  /// Whether it has this one of parameters().
  bool holds(size_t parameter) const {
    return held_parameters_.empty() || held_parameters_[parameter];
  }

  /// The layers of the network are parts, of which the others have the rest: what exchanges between
  /// them do. Before any allocation.
  void share_layers(const TensorRanks& ranks);
  /// Which of these ranks divide experts, where they are others than those of share_layers(), which
  /// comes before. Before any allocation.
  void share_experts(const ExpertRanks& ranks) { expert_ranks_ = ranks; }
  /// Which part of a cut parameter this rank has.
  int32_t part_index(const TensorCut& cut) const {
    return cut.by_experts ? expert_ranks_.index() : tensor_ranks_.index;
  }
  /// The samples are parts, of which the others have the other positions. Before any allocation.
  void share_positions(const TensorRanks& ranks);

  /// Batch norms of trainings take the statistics of all ranks, as torch's SyncBatchNorm does.
  void synchronise_statistics() { synchronises_statistics_ = true; }
  /// Of the last layer, if it did so: the host waits for it before the next one.
  std::optional<Ticket> take_gathered() { return std::exchange(gathered_, std::nullopt); }

  /// Allocates parameters and buffers; with numerics also gives them their first values, which are
  /// drawn from the plan's seed and `variant` (ranks that are seeded differently pass their rank).
  /// Does nothing where the replica has its memory already.
  void allocate(Rank& rank, uint64_t variant = 0);
  /// The same with memory of the caller for the parameters, which it frees after release().
  void allocate_in(Rank& rank, const std::vector<Slice>& parameters, uint64_t variant = 0);
  /// Buffers and the loss alone, for a strategy that sets Parameter::tensor.value while it is used.
  void allocate_without_parameters(Rank& rank);
  /// The first value of a parameter, an index into parameters(): what allocate() writes.
  Values initial_value(size_t parameter, uint64_t variant) const;
  /// Takes memory for parameters and buffers, in definition order, that the caller frees after it.
  void adopt(Rank& rank, const std::vector<Slice>& parameters, const std::vector<Slice>& buffers);
  /// Frees all that the replica owns. It may be allocated again.
  void release(Rank& rank);
  bool is_allocated() const { return is_allocated_; }

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
  bool runs(size_t layer, const StepOptions& options) const;

  /// The forward of some layers alone, in steps: begin_part, forward_layer for each, and end_part,
  /// or end_forward where the loss is behind them (replica_parts.cpp).
  struct Part {
    std::optional<Slice> input{};  ///< what the layer before gave; it outlives the forward
    bool has_loss = false;
  };
  void begin_part(Rank& rank, const Batch& batch, const StepOptions& options, const Part& part);
  void end_part(Rank& rank, const StepOptions& options);
  /// The backward of a part without loss begins with the gradient of its output, in memory that
  /// outlives it; backward() of its layers follows.
  void begin_backward_of_part(const Slice& gradient) { now_.gradient = gradient; }
  /// With numerics: what the backward of its layers has given for the one before. The caller frees
  /// it.
  Slice take_input_gradient();

  /// Whether the values of a forward decide which experts of a mixture get tokens.
  bool routes_tokens() const { return routes_tokens_; }
  /// The last forward has ended: reads which experts got tokens. One with parameters of its own
  /// that got none is no part of autograd's graph: its gradients stay as they were.
  void read_routing(Rank& rank);
  /// Of all forwards of trainings so far.
  const std::vector<ExpertLoad>& expert_loads() const { return expert_loads_; }

  /// The number of the last forward; each has its own.
  int64_t last_forward() const { return now_.number; }
  /// The last forward keeps what it left beyond the next one, for a backward through both.
  void keep_forward();
  /// A kept forward is no longer wanted.
  void drop_forward(Rank& rank, int64_t number);
  /// The next backward goes through these forwards, the last one first: the last, or kept ones.
  void go_back_through(std::vector<BackwardPass> passes) { passes_ = std::move(passes); }
  bool has_passes() const { return !passes_.empty(); }
  /// These, or where nothing was said the last forward alone, as `options` ask for it.
  std::vector<BackwardPass> take_passes(const StepOptions& options);
  /// What follows is about this forward.
  void turn_to(int64_t number);
  /// The backward has ended: the last forward is current again, those used up are forgotten.
  void return_to(int64_t last);
  /// Whether one of the passes behind `pass` adds to gradients of the layer's parameters.
  bool adds_later(std::span<const BackwardPass> passes, size_t pass, size_t layer) const;
  /// Layers through which the backward that comes may go, of all forwards that it may go through.
  std::vector<size_t> layers_of_backward() const;

  /// The backward of the last forward, in pieces so that a strategy decides when each gradient is
  /// exchanged: first the loss, then the layers that ran, last to first.
  Ticket backward_of_loss(Rank& rank, const StepOptions& options, After after = {});
  /// Like backward_of_loss, for a loss that the program computes from the output.
  Ticket backward_of_own_loss(Rank& rank, const StepOptions& options, After after);
  /// Layers of the last forward through which its backward goes, last first.
  std::vector<size_t> layers_last_to_first() const;
  /// Whether the parameter gets a gradient by the backward of the last forward, if its layer ran.
  bool wants_gradient(const Parameter& parameter) const;
  /// Whether the backward of the layer makes a gradient of its input.
  bool passes_gradient_on(size_t layer) const { return wants_input_gradient(layer); }
  /// Adds to the gradients of the layer's parameters, behind what runs again of its segment.
  /// With `input` what the other half needs is kept until it comes.
  Ticket backward(Rank& rank, size_t layer, BackwardHalf half = BackwardHalf::both);
  /// The second forward in steps, so that a strategy may act between its layers: those that run
  /// again before the backward of this layer, in order. Each must then run, before backward().
  std::vector<size_t> begin_recomputation(size_t layer);
  void recompute(Rank& rank, size_t layer);
  /// Frees what forward kept; called by the last backward, or to drop a forward.
  void forget_forward(Rank& rank);

  /// Which parameters a rank updates where others update the rest.
  struct OwnedStep {
    std::vector<bool> owns;            ///< by parameter
    std::vector<bool> counts{};        ///< whose squares enter the norm here; empty: as `owns`
    std::optional<SharedNorm> norm{};  ///< clipping by norm counts those of all ranks, each once
  };
  /// Gradients that the optimizer's step reads; of those that `owned` names where their norm is
  /// shared.
  std::vector<Slice> gradients_of_step(size_t optimizer, const OwnedStep* owned) const;
  /// Clips them.
  void clip(Rank& rank, const UpdateOptions& options, const OwnedStep* owned);
  /// Clips the gradients of the optimizer's parameters and updates these, or those of them that
  /// `owned` names.
  Ticket optimizer_step(Rank& rank, const UpdateOptions& options, SiteId site,
                        const OwnedStep* owned = nullptr);
  /// A new optimizer takes over: frees the state of the old one.
  void forget_optimizer(Rank& rank);
  /// set_to_none makes the gradients of the optimizer's parameters None; else those that exist are
  /// filled with 0.
  void zero_gradients(Rank& rank, size_t optimizer, bool set_to_none);

  const TrainingPlan& plan() const { return *plan_; }
  const Network& network() const { return *plan_->network; }
  bool writes_values() const { return plan_->numerics && !plan_->valueless; }
  DeviceId device() const { return device_; }
  StreamId compute() const { return stream(queue::compute, device_); }
  std::vector<Parameter>& parameters() { return parameters_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Indices into parameters() of all that the layer reads, those of a tied layer among them.
  const std::vector<size_t>& parameters_of(size_t layer) const {
    return layout_->parameters_of[layer];
  }
  /// Indices into parameters() of the trainable ones of a layer, in definition order.
  const std::vector<size_t>& trainable_of(size_t layer) const {
    return layout_->trainable_of[layer];
  }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  /// Parameters, buffers: their values in definition order.
  std::vector<Slice> parameter_values() const;
  std::vector<Slice> buffer_values() const;
  /// Gradients of the trainable parameters, in definition order; no_buffer if None.
  std::vector<Slice> gradients() const;
  /// Makes the gradient exist, if it is None.
  void ensure_gradient(Rank& rank, Parameter& parameter);
  /// Makes every gradient exist; those that were None are 0.
  void fill_missing_gradients(Rank& rank);
  /// Makes it None.
  void forget_gradient(Rank& rank, Parameter& parameter);
  /// The inputs and targets that the last forward moved to the device.
  Bytes batch_bytes() const { return now_.input.bytes() + now_.target.bytes(); }
  /// The loss of the last forward: one element, fp32.
  Slice loss() const { return loss_; }
  /// The output shape of one sample in the last forward.
  const Shape& output_shape() const;
  Slice output() const { return now_.trace.empty() ? Slice{} : now_.trace.back().output; }

 private:
  /// Buffers that the forward of one layer left.
  struct LayerRun {
    size_t layer = 0;
    Slice input;
    Slice output;
    Slice kept;                      ///< memory that the framework keeps for backward
    Slice recomputed;                ///< the same, of the forward that ran again
    Slice weight_copies;             ///< autocast's
    Slice statistics;                ///< of all ranks, where a batch norm shares them
    Slice output_gradient;           ///< while the gradients of its weights are yet to come
    std::optional<size_t> residual;  ///< of residual layers: index into now_.residuals
    /// In a training: the segment whose forward runs again before its backward.
    const CheckpointedSegment* segment = nullptr;
  };
  /// Which of a layer's forwards.
  struct Turn {
    bool training = true;
    bool again = false;    ///< the second one, of a checkpointed segment
    bool is_last = false;  ///< of that segment
  };
  struct Cost {
    int64_t work = 0;
    Bytes memory_traffic{};
  };
  /// What a forward leaves for its backward.
  struct Forward {
    int64_t number = 0;
    int64_t samples = 0;
    size_t last_module = 0;
    size_t first_wanted_layer = 0;         ///< that has a parameter which gets a gradient
    std::optional<size_t> only_optimizer;  ///< whose parameters alone get one
    Slice input;
    Slice target;
    Slice kept_by_loss;
    Slice greatest_scores;        ///< of each row, where ranks have parts of the classes
    SampleComparison comparison;  ///< where the loss compares samples
    Slice score_sums;             ///< the same: of their exponentials
    std::vector<ExpertRun> expert_runs;
    std::vector<ContextRun> context_runs;
    double loss_factor = 1;                           ///< of its backward
    std::vector<ParameterPlace> unused{};             ///< of experts that got no token
    std::vector<std::pair<size_t, Slice>> choices{};  ///< by layer, of a training
    std::vector<Slice> transient;                     ///< freed with the forward
    std::vector<LayerRun> trace;
    std::vector<SkipConnection> residuals;
    std::vector<size_t> open_residuals;
    const CheckpointedSegment* recomputed = nullptr;  ///< whose backward is under way
    Slice current;                                    ///< activation that the next layer reads
    Slice gradient;                                   ///< gradient that the next backward reads
  };

  const Forward& forward_of(int64_t number) const;
  bool fills_gradients(const Forward& forward, size_t layer) const;
  void release_forward(Rank& rank, Forward& forward);
  void begin_any_forward(Rank& rank, const Batch& batch, const StepOptions& options);
  void bring_batch(Rank& rank, const Batch& batch, const StepOptions& options, After after);
  Slice bring_input(Rank& rank, const Batch& batch, const StepOptions& options);
  Slice bring_target(Rank& rank, const Batch& batch, const StepOptions& options);
  void copy_to_device(Rank& rank, const Slice& host, const Slice& there, After after);
  void find_first_wanted_layer(const StepOptions& options);
  void run_layer(Rank& rank, size_t layer, bool training);
  std::optional<size_t> residual_of(size_t layer);
  void pass_residual(const LayerRun& run);
  void forward_of_run(Rank& rank, LayerRun& run, const Turn& turn);
  DType output_type_of(const LayerRun& run) const;
  void submit_forward(Rank& rank, const LayerRun& run, const Turn& turn, const Slice& output);
  Cost cost_of(const LayerRun& run, const Turn& turn) const;
  bool updates_buffers(const LayerRun& run, const Turn& turn) const;
  // replica_memory.cpp; nothing is kept there with numerics, where every tensor is an operand.
  Slice keep(Rank& rank, Bytes of_sample);
  Slice hold(Rank& rank, Purpose purpose, Bytes whole);
  Slice keep_for_backward(Rank& rank, LayerRun& run, const Turn& turn);
  Slice begin_loss(Rank& rank, bool training);
  void free_weight_copies(Rank& rank, bool training);
  Bytes backward_working_set(const LayerRun& run, Bytes made_gradients) const;
  Slice hold_for_loss_backward(Rank& rank);
  Cost backward_cost(size_t layer, BackwardHalf half) const;
  std::span<LayerRun> runs_of(const CheckpointedSegment& segment);
  void forget_inside(Rank& rank, const CheckpointedSegment& segment);
  LayerRun& run_of(size_t layer);
  static void forget(Rank& rank, Slice& memory);
  void meet_residual(Rank& rank, const LayerRun& run, std::vector<Slice>& reads,
                     std::vector<Slice>& writes);
  Ticket backward_of_run(Rank& rank, LayerRun& run, std::vector<Slice> gradients,
                         BackwardHalf half);
  std::vector<Slice> gradients_to_fill(Rank& rank, size_t layer, Bytes& made);
  // replica_batch_norm.cpp
  void forward_of_batch_norm(Rank& rank, LayerRun& run, const Turn& turn, const Slice& output);
  Ticket backward_of_batch_norm(Rank& rank, LayerRun& run, const std::vector<Slice>& gradients);
  // replica_experts.cpp
  Slice begin_counting(Rank& rank, const LayerRun& run);
  ExpertRun& experts_of(size_t layer);
  // replica_divided_experts.cpp
  struct RowGradients;
  void note_load(size_t layer, const Values& choices);
  Ticket send_numbers(Rank& rank, const ExpertRun& run);
  void read_numbers(Rank& rank, ExpertRun& run, const Turn& turn);
  void learn_sizes(Rank& rank, ExpertRun& run, const Turn& turn);
  Slice memory_of_rows(Rank& rank, const Slice& like);
  KernelCall backward_part(const LayerRun& run, std::span<const double> scalars) const;
  void backward_of_combination(Rank& rank, const LayerRun& run, const RowGradients& rows);
  Ticket backward_of_computation(Rank& rank, const LayerRun& run, const RowGradients& rows,
                                 const std::vector<Slice>& gradients);
  Ticket backward_of_routing(Rank& rank, const LayerRun& run, const RowGradients& rows,
                             const Slice& router_gradient);
  void forward_of_experts(Rank& rank, const LayerRun& run, const Turn& turn, const Slice& output);
  Ticket backward_of_experts(Rank& rank, const LayerRun& run, const std::vector<Slice>& gradients);
  Ticket send_rows(Rank& rank, const ExpertRun& run, const Slice& from, const Slice& to,
                   bool to_experts, std::string_view site);
  Ticket bring_rows(Rank& rank, const ExpertRun& run, const RowsOnTheWay& rows,
                    std::string_view site);
  Ticket return_rows(Rank& rank, const ExpertRun& run, const RowsOnTheWay& rows,
                     std::string_view site);
  RowsOnTheWay rows_on_the_way(Rank& rank, const Slice& at_home, const ExpertRun& run);
  void free_way(Rank& rank, const RowsOnTheWay& rows);
  bool is_unused(const Parameter& parameter) const;
  // replica_context.cpp
  Values own_positions(const Values& samples, const Shape& part) const;
  void forward_of_context(Rank& rank, const LayerRun& run, const Turn& turn, const Slice& output);
  Ticket backward_of_context(Rank& rank, const LayerRun& run);
  // replica_exchange.cpp
  struct ExchangedTensor;
  void exchange_forward(Rank& rank, const LayerRun& run, const Slice& output);
  Ticket exchange_backward(Rank& rank, const LayerRun& run);
  Ticket exchange(Rank& rank, TensorExchange how, const ExchangedTensor& tensor, SiteId site);
  Ticket sum_over_ranks(Rank& rank, const ExchangedTensor& tensor, SiteId site);
  Ticket gather_parts(Rank& rank, const ExchangedTensor& tensor, SiteId site);
  Ticket scatter_sums(Rank& rank, const ExchangedTensor& tensor, SiteId site);
  Ticket take_own_part(Rank& rank, const ExchangedTensor& tensor, SiteId site);
  Ticket travel_again(Rank& rank, const ExchangedTensor& tensor, SiteId site);
  ExchangedTensor exchanged(const Layer& layer, const ExchangeArguments& how) const;
  SampleComparison::Call comparison_call() const;

  // replica_loss_parts.cpp
  bool has_loss_in_parts() const;
  double first_class() const;
  Ticket forward_of_loss_parts(Rank& rank);
  Ticket backward_of_loss_parts(Rank& rank, const StepOptions& options, After after);
  Ticket agree(Rank& rank, const Slice& of_rows, Reduction reduction);
  DType type_behind(size_t layer) const;
  void turn_to_shortcut(Rank& rank, SkipConnection& residual);
  void allocate_buffers(Rank& rank);
  Slice transient(Rank& rank, int64_t elements, DType dtype);
  void fill_with_zeros(Rank& rank, const Slice& data);
  bool holds_layer(size_t layer) const { return held_layers_.empty() || held_layers_[layer]; }
  bool is_held_by(size_t optimizer, const Parameter& parameter) const;
  std::optional<double> place_of_part(const Layer& layer) const;
  const std::vector<size_t>& buffers_of(size_t layer) const { return layout_->buffers_of[layer]; }
  bool wants_input_gradient(size_t layer) const { return layer > now_.first_wanted_layer; }

  const TrainingPlan* plan_;
  DeviceId device_;
  std::shared_ptr<const ReplicaLayout> layout_;
  std::vector<Parameter> parameters_;
  std::vector<bool> held_layers_;      ///< empty: all
  std::vector<bool> held_parameters_;  ///< the same, by parameter
  std::vector<Buffer> buffers_;
  TensorRanks tensor_ranks_;
  ExpertRanks expert_ranks_;
  TensorRanks context_ranks_;           ///< that have the other positions
  std::vector<DType> exchanged_types_;  ///< by layer, where nothing carries values
  Slice loss_;
  std::vector<ExpertLoad> expert_loads_;
  std::optional<Ticket> gathered_;
  bool synchronises_statistics_ = false;
  bool routes_tokens_ = false;
  bool is_allocated_ = false;
  bool owns_parameters_ = false;
  bool owns_buffers_ = false;

  Forward now_;                ///< the last, or the one whose backward is under way
  std::vector<Forward> kept_;  ///< earlier ones that a backward may still go through
  std::vector<BackwardPass> passes_;
  int64_t forwards_ = 0;
};

}  // namespace lockstep
