#include "model/strategy/data_parallel/horovod/horovod.hpp"

#include <algorithm>
#include <exception>

#include "model/strategy/data_parallel/horovod/horovod_sites.hpp"
#include "model/strategy/data_parallel/horovod/optimizer_state_names.hpp"
#include "model/strategy/exchange/first_weights.hpp"
#include "model/strategy/local_model/scaled_step.hpp"
#include "model/strategy/local_model/statistics_kept_apart.hpp"

namespace lockstep {

namespace {

constexpr std::string_view gradients_averaged = "gradients_reduced";

}  // namespace

Horovod::Horovod(const TrainingPlan& plan, const HorovodOptions& options)
    : ReplicatedDataParallel(plan, plan, gradients_averaged), options_(options) {}

// An exception of the program ends the process, which shuts Horovod down on all ranks.
Horovod::~Horovod() {
  if (std::uncaught_exceptions() > 0) {
    for (const std::shared_ptr<Negotiator>& each : {of_set_, negotiator_}) {
      if (each && each->is_running()) {
        each->abandon(*rank_);
      }
    }
  }
}

// The engine

NegotiationOptions Horovod::negotiation(const Rank& rank) const {
  NegotiationOptions options;
  options.cycle_time = options_.cycle_time;
  options.cache_capacity = options_.cache_capacity;
  options.fusion.threshold =
      plan().node_ranks >= 0
          ? working_threshold(options_.fusion_threshold, rank.place().local_world_size)
          : options_.fusion_threshold;  // controller.cc rounds up where all nodes are alike
  options.fusion.predivide_factor = options_.predivide_factor;
  options.fusion.average_of_backend = plan().barrier_is_all_reduce;
  options.fusion.waits_for_each = !plan().barrier_is_all_reduce;
  options.fusion.keeps_whole_buffer = !plan().numerics;
  return options;
}

// hvd.init. A world of one rank has nobody to agree with.
Program Horovod::open(Rank& rank) {
  rank_ = &rank;
  if (!negotiator_) {
    negotiator_ = std::make_shared<Negotiator>(negotiation(rank));
  }
  if (!negotiator_->is_running()) {
    co_await negotiator_->start(rank);
  }
}

// hvd.init(process_sets=..): all ranks register all sets, in one order.
Program Horovod::open_process_sets(Rank& rank) {
  for (const std::vector<int64_t>& set : options_.process_sets) {
    if (has_process_sets_) {
      break;  // set up again, as by a second `fit`
    }
    NegotiationOptions options = negotiation(rank);
    options.process_set = set;
    const auto negotiator = std::make_shared<Negotiator>(options);
    co_await negotiator->make_groups(rank);
    if (std::ranges::count(set, int64_t{rank.id()}) != 0) {
      of_set_ = negotiator;
    }
  }
  has_process_sets_ = true;
  if (of_set_ && !of_set_->is_running()) {
    co_await of_set_->start(rank);
  }
}

const std::shared_ptr<Negotiator>& Horovod::of_gradients() const {
  return options_.process_sets.empty() ? negotiator_ : of_set_;
}

// Construction

Program Horovod::setup(Rank& rank, Stage stage) {
  const bool draws_alike = !options_.broadcasts_parameters && options_.seeded_alike;
  replica().allocate(rank, static_cast<uint64_t>(draws_alike ? 0 : rank.id()));
  if (options_.combines_steps && stage == Stage::fit && rank.world_size() > 1) {
    if (!adasum_) {
      adasum_.emplace(replica());
    }
    co_await adasum_->begin(rank);
  }
  if (rank.world_size() > 1) {
    co_await open(rank);
  }
  if (stage != Stage::fit) {
    co_return;  // Lightning broadcasts nothing where no optimizer is set up
  }
  replica().forget_optimizer(rank);
  if (rank.world_size() > 1 && options_.broadcasts_parameters) {
    co_await send_states(rank);
  }
  for (size_t optimizer = 0; optimizer < plan().optimizers.size(); ++optimizer) {
    co_await send_optimizer(rank, optimizer);
  }
  replica().forget_optimizer(rank);  // DistributedOptimizer is a new one, of the same parameters
  if (rank.world_size() > 1) {
    co_await open_process_sets(rank);
  }
  for (size_t optimizer = 0; options_.groups > 0 && optimizer < plan().optimizers.size();
       ++optimizer) {
    if (of_gradients()) {
      co_await send_names(rank, optimizer);
    }
  }
  // The optimizer of a rank outside of the set that it was given registers no hooks.
  if (of_gradients() && !adasum_) {
    exchange_.emplace(replica(), of_gradients(), options_);
  }
}

// hvd.broadcast_parameters of the module's state_dict: one broadcast for each, in the order of
// their names.
Program Horovod::send_states(Rank& rank) {
  struct State {
    std::string name;
    Slice value;
    NameSpace space;
    int64_t number;
  };
  std::vector<State> states;
  const Network& network = replica().network();
  for (const Replica::Parameter& parameter : replica().parameters()) {
    states.push_back({network.parameter_name(parameter.place), parameter.tensor.value,
                      NameSpace::parameter, std::ssize(states)});
  }
  int64_t number = 0;
  size_t of_layer = 0;
  for (const Replica::Buffer& buffer : replica().buffers()) {
    const bool follows = number > 0 && replica().buffers()[number - 1].layer == buffer.layer;
    of_layer = follows ? of_layer + 1 : 0;
    const Layer& layer = network.layers[buffer.layer];
    states.push_back({layer.name + "." + layer.buffers[of_layer].name, buffer.value,
                      NameSpace::buffer, number++});
  }
  std::ranges::stable_sort(states, {}, &State::name);
  const SiteId site = site_id(horovod_sites::send_states);
  const Ticket ready = rank.event({compute_stream, {}, site});
  std::vector<int64_t> handles;
  for (const State& state : states) {
    handles.push_back(negotiator_->submit(
        rank, request_of(RequestKind::broadcast, state.space, state.number, state.value),
        state.value, {}, ready, broadcast_name(state.name)));
  }
  for (const int64_t handle : handles) {
    co_await negotiator_->wait(rank, handle, site);
  }
}

Program Horovod::teardown(Rank& rank) {
  exchange_.reset();
  if (negotiator_ && negotiator_->is_running()) {
    co_await join_all(rank, site_id(horovod_sites::join));
    if (of_set_ && of_set_->is_running()) {
      co_await of_set_->stop(rank);
    }
    co_await negotiator_->stop(rank);
  }
}

// One iteration

// Hooks of Adasum's optimizer step a parameter when its gradient is there, once before `step()`.
Program Horovod::backward(Rank& rank, const StepOptions& options) {
  if (adasum_ && ++backwards_ > options_.passes_per_step) {
    throw ProgramException(
        site_id(horovod_sites::update),
        "AssertionError: Gradients were computed more than backward_passes_per_step times before "
        "call to step(). Increase backward_passes_per_step to accumulate gradients locally.");
  }
  co_await ReplicatedDataParallel::backward(rank, options);
}

Program Horovod::optimizer_step(Rank& rank, const UpdateOptions& options) {
  if (adasum_) {
    backwards_ = 0;
    adasum_->remember(rank, options.optimizer);
    UpdateOptions unclipped = options;  // Lightning clips when the hooks have stepped
    unclipped.clipping = {};
    replica().optimizer_step(rank, unclipped, site_id(horovod_sites::update));
    for (const Bytes bytes : co_await adasum_->combine(rank)) {
      transfers().add(gradients_averaged, bytes);
    }
    transfers().end_step();
    co_return;
  }
  // Lightning has called synchronize() behind the backward, so that the scaler divides averages.
  const std::optional<UpdateOptions> update = co_await scaled_step(rank, replica(), options);
  if (update) {
    replica().optimizer_step(rank, *update, site_id(horovod_sites::update));
  }
  transfers().end_step();
}

// A rank whose data have ended goes on to the join of teardown.
Task<bool> Horovod::join(Rank&, MirroredIterations&) { co_return false; }

// What the threads of the engine do is theirs to say.
void Horovod::remember(ProgramMemory& memory) const {
  memory.numbers.push_back(backwards_);
  for (const std::shared_ptr<Negotiator>& each : {negotiator_, of_set_}) {
    memory.numbers.push_back(each && each->is_running() ? 1 : 0);
  }
  if (exchange_) {
    exchange_->remember(memory);
  }
}

// Rank 0 coordinates the others, which tell it the same; the first rank of a set those of the set.
// Adasum pairs ranks.
std::vector<int64_t> Horovod::kinds_of_ranks(const RanksOfRun& run) {
  if (options_.combines_steps) {
    return {};
  }
  std::vector<int64_t> kinds(static_cast<size_t>(run.all), 0);
  int64_t next = 1;
  for (const std::vector<int64_t>& set : options_.process_sets) {
    for (const int64_t rank : set) {
      kinds[static_cast<size_t>(rank)] = rank == set.front() ? next : next + 1;
    }
    next += 2;
  }
  return kinds;
}

std::vector<KnownDifference> Horovod::known_differences() {
  std::vector<KnownDifference> known;
  add_statistics_kept_apart(replica(), plan().world_size,
                            "Horovod averages gradients; nothing sends the running statistics of "
                            "batch norm after the start",
                            known);
  if (!options_.broadcasts_parameters && !options_.seeded_alike && plan().world_size > 1) {
    if (auto unsent = unsent_first_weights(
            replica().network(), "broadcast_parameters: false",
            "call hvd.broadcast_parameters(model.state_dict(), root_rank=0) before training: leave "
            "broadcast_parameters out")) {
      known.push_back(*std::move(unsent));
    }
  }
  if (adasum_) {
    known.push_back(
        {"Adasum combines what the ranks' own steps have changed, not their gradients, and "
         "clipping comes too late for these steps",
         "", DifferenceKind::by_design});
    return known;
  }
  if (!options_.process_sets.empty()) {
    known.push_back(
        {"process_sets average gradients within each set alone, and a rank of none keeps "
         "its own: each set trains weights of its own. Lightning saves those of rank 0, "
         "and a value logged with sync_dist is that of all sets together",
         "leave process_sets out, so that all ranks average their gradients",
         DifferenceKind::of_replicas});
  }
  if (options_.sums) {
    known.push_back(
        {"op: sum adds the gradients of all ranks, which gives the number of ranks times "
         "their average",
         "use op: average, or divide the learning rate by the number of ranks"});
  }
  // ASGD's `lambd` decays, too.
  const auto decays = [](const OptimizerPlan& optimizer) {
    return optimizer.weight_decay != 0 || optimizer.kind == OptimizerKind::asgd;
  };
  if (std::ranges::any_of(plan().optimizers, decays)) {
    known.push_back(
        {"hvd.broadcast_optimizer_state makes the optimizer's state by a step with zero "
         "gradients, in which weight decay acts once more",
         ""});
  }
  return known;
}

std::string Horovod::no_sync_refusal() const {
  return "the module has no no_sync: Horovod wraps the optimizer, not the module";
}

}  // namespace lockstep
