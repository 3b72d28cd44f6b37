#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/rank.hpp"
#include "model/program/rank_classes.hpp"
#include "model/strategy/checkpoint.hpp"
#include "model/strategy/compiled_graph.hpp"
#include "model/strategy/known_difference.hpp"
#include "model/strategy/missing_loss.hpp"
#include "model/strategy/plan.hpp"
#include "model/strategy/stage.hpp"
#include "model/strategy/staleness.hpp"
#include "model/strategy/step_kinds.hpp"
#include "model/strategy/transfers.hpp"
#include "model/strategy/update_options.hpp"
#include "model/strategy/written_bytes.hpp"

namespace lockstep {

class LossScale;
class Replica;

/// Elements of a parameter that a rank holds between steps: all of them, or its shard.
struct HeldParameter {
  size_t parameter = 0;  ///< in definition order
  int64_t first_element = 0;
  Slice value;
};

/// How many ranks there are, and how many of them on each node.
struct RanksOfRun {
  int32_t all = 1;
  int32_t of_node = 1;
  bool writing_takes_time = false;  ///< of files, by their bytes
  std::vector<int64_t> batches{};   ///< by rank, of an epoch of training; empty: as many on each
};

/// Hears of the iterations of other ranks that a rank without data mirrors.
class MirroredIterations {
 public:
  virtual ~MirroredIterations() = default;
  /// One begins, or it turns out that there is none.
  virtual void begin() {}
  /// It was one, with an exchange of gradients or without.
  virtual void end(bool /*exchanges_gradients*/) {}
};

/// How a training run is spread over devices: Lightning's Strategy, one object per rank. The
/// trainer calls it; it talks to the world through its Rank alone. Every coroutine may be awaited
/// once the one before has ended.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// The registry's name: "ddp".
  virtual std::string_view name() const = 0;

  /// Begins a run of the trainer. The first call allocates and initialises the model, which
  /// outlives runs; `Stage::fit` also wraps it for training, with the collectives of construction.
  virtual Program setup(Rank& rank, Stage stage) = 0;
  /// One forward; leaves the loss in `loss()`.
  virtual Program forward(Rank& rank, const Batch& batch, const StepOptions& options) = 0;
  /// The backward of the last forward, with whatever exchange of gradients goes with it.
  virtual Program backward(Rank& rank, const StepOptions& options) = 0;
  virtual Program optimizer_step(Rank& rank, const UpdateOptions& options) = 0;
  /// Comes before the hook on_before_optimizer_step, and before automatic optimization clips.
  /// `options` have the clipping that manual optimization has asked for up to here.
  virtual Program complete_gradients(Rank& rank, const UpdateOptions& options);
  /// Clears the gradients of one optimizer, an index into TrainingPlan::optimizers.
  virtual Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) = 0;
  /// Runs on a rank whose data have ended, which may be before the others' (DDP: join's shadow
  /// collectives). True: all ranks hold the model of one of them afterwards, and go on together.
  virtual Task<bool> join(Rank& rank, MirroredIterations& others);
  /// Ends the run that setup() began, and undoes what it did for this stage alone.
  virtual Program teardown(Rank& rank);
  /// The whole program of a rank that runs no trainer (TrainerMembership::runs_trainer).
  virtual Program serve(Rank& rank);
  /// The program of a rank that runs a trainer has ended, and needs its servers no more.
  virtual Program dismiss_servers(Rank& rank);

  // Across ranks, for the trainer. `site` is the place in user code or trainer that asks.
  /// Element-wise over all ranks: Lightning's `reduce`, which is a barrier and an all_reduce. The
  /// result replaces the data.
  virtual Program reduce(Rank& rank, Slice data, Reduction reduction, SiteId site) = 0;
  virtual Program barrier(Rank& rank, SiteId site) = 0;
  virtual Program broadcast(Rank& rank, Slice data, int32_t root, SiteId site) = 0;
  virtual Program all_gather(Rank& rank, Slice part, Slice whole, SiteId site) = 0;
  /// LightningModule.all_gather where StrategyTraits::gathers_rows: the rows of all ranks behind
  /// each other, in new memory. `shape` of this rank's part has at least one dimension, and the
  /// first of it may differ between ranks.
  virtual Task<Slice> gather_rows(Rank& rank, Slice part, std::vector<int64_t> shape, SiteId site);

  /// By rank a number that is the same for ranks that do the same operations on the same sizes, of
  /// those with the same place in a node, while each calls the strategy as the others do and no
  /// value decides anything; rank 0 and its node are never among them. Asked of a strategy that is
  /// not set up. Empty: any two ranks may differ.
  virtual std::vector<int64_t> kinds_of_ranks(const RanksOfRun& /*ranks*/) { return {}; }
  /// Of those that kinds_of_ranks() takes for alike, each exchanges with its neighbours what the
  /// others do with theirs, at the same places among them.
  virtual Neighbourhoods neighbourhoods_of_ranks(const RanksOfRun& /*ranks*/) { return {}; }
  /// Whether it makes a process group, also of one rank.
  virtual bool has_process_group() const { return false; }

  /// Whether its own counting decides what some optimizer step of a fit does that is still to come.
  virtual bool counts_steps() const { return false; }
  /// Adds what it decides so in the step that comes `ahead` steps behind the next one: steps of
  /// which it says the same do the same. `forwards`: of a step.
  virtual void add_step_kind(int64_t /*ahead*/, int64_t /*forwards*/,
                             std::vector<int64_t>& /*kind*/) const {}
  /// Adds where it stands so many steps and forwards later: from places of which it says the same
  /// on it does the same.
  virtual void add_place(int64_t /*steps*/, int64_t /*forwards*/,
                         std::vector<int64_t>& /*place*/) const {}
  /// What an optimizer step exchanges, the one so many later does; 0: that follows time, not steps.
  virtual int64_t steps_of_cycle(int64_t /*forwards*/) const { return 1; }
  /// So many steps and forwards were left out.
  virtual void leave_out(int64_t /*steps*/, int64_t /*forwards*/) {}

  /// Adds what else it keeps from one step to the next and acts by.
  virtual void remember(ProgramMemory& /*memory*/) const {}

  /// Whether a step hook runs: a wrapper around the whole module does more than it stands for where
  /// it is called, and when it returns.
  virtual void in_step_hook(bool /*runs*/) {}

  /// The mean loss of the last forward: one element, on the first device.
  virtual Slice loss() const = 0;
  /// Tickets that later readers of the loss must wait for.
  virtual Ticket loss_ready() const = 0;
  /// Once set up: why loss() holds no loss on this rank; none: it does.
  virtual std::optional<MissingLoss> missing_loss() const { return std::nullopt; }
  /// This rank's copy of the model; the first, where a rank holds several.
  virtual Replica& replica() = 0;
  /// What this rank holds of each parameter between steps, in definition order.
  virtual std::vector<HeldParameter> held_parameters();
  /// Lightning's dump_checkpoint and Strategy.save_checkpoint: brings together what files hold, a
  /// collective of all ranks where some state is divided, and writes them. Returns what this
  /// rank writes. By default rank 0 has everything and writes it.
  virtual Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site);
  /// What `state_dict()` of the module does on this rank alone: nothing where a rank holds the
  /// values that it returns, or a part of them.
  virtual Program read_state_dict(Rank& rank, SiteId site);
  /// `with summon_full_params(model)`: brings the whole parameters of every module together beside
  /// the parts, and frees them at the end. False: its wrapper has nothing of the kind.
  virtual bool has_whole_parameters() const { return false; }
  virtual Program begin_whole_parameters(Rank& rank);
  virtual Program end_whole_parameters(Rank& rank);
  /// Whether the module has `set_requires_gradient_sync`.
  virtual bool has_gradient_sync_switch() const { return false; }
  /// Whether Lightning leaves out the exchange of gradients while it accumulates batches:
  /// ParallelStrategy.block_backward_sync does so for every wrapper that has a no_sync.
  virtual bool accumulates_without_exchange() const { return true; }

  /// The clipping of every step that its own configuration fixes, whatever the Trainer asks for;
  /// none: it says nothing, and the Trainer's holds.
  virtual std::optional<GradientClipping> configured_clipping() const { return std::nullopt; }

  /// Why its wrapper's no_sync raises; empty: it does not.
  virtual std::string no_sync_refusal() const { return ""; }
  /// Of an engine's own scaler, under LossScaling::of_strategy; null: it has none, or another kind.
  virtual const LossScale* loss_scale() const { return nullptr; }
  /// Why weights may change outside of the calls that the trainer makes, so that what reads them
  /// between two of these gets one or the other value; empty: they do not.
  virtual std::string weights_change_beside() const { return ""; }
  /// What it has done otherwise than one device, for LS306.
  virtual std::vector<KnownDifference> known_differences() { return {}; }

  /// The largest |x - decoded x| over all numbers that this rank compressed; none: it compressed
  /// none, or they carry no values.
  virtual std::optional<double> compression_error(Rank& /*rank*/) { return std::nullopt; }

  /// Of the gradients that this rank received; none: it is no server.
  virtual std::optional<Staleness> staleness() const { return std::nullopt; }

  /// What a compiler has translated so far, in the order of first use; none: nothing is compiled.
  virtual std::vector<CompiledGraph> compiled_graphs() const { return {}; }

  /// Transfers of the last optimizer step, for transfers.LABEL; empty if not counted.
  virtual std::vector<Transfer> transfers_per_step() const { return {}; }

  /// True where a step hook runs on copies of the module that are thrown away after it, and what it
  /// assigns to the module with them.
  virtual bool steps_on_copies() const { return false; }
  /// Then: what each copy gets of a batch, the copy that computes it, and its own loss, where
  /// loss() is.
  virtual std::vector<Batch> parts(const Batch& batch) const { return {batch}; }
  virtual Replica& copy(size_t part);
  virtual Slice loss_of(size_t part) const;
};

}  // namespace lockstep
