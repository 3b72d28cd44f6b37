#include "model/strategy/server/parameter_server.hpp"

#include <algorithm>

#include "model/strategy/exchange/collective_parts.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/statistics_kept_apart.hpp"
#include "model/strategy/server/server_sites.hpp"

namespace lockstep {

using namespace server_sites;

namespace {
constexpr std::string_view pushed = "pushed";
constexpr std::string_view pulled = "pulled";
}  // namespace

ParameterServer::ParameterServer(const TrainingPlan& plan, const ServerOptions& options)
    : ReplicatedDataParallel(plan, plan, pushed),
      options_(options),
      layout_(replica(), options.servers) {}

// Construction

// The first call of every rank, servers among them: only workers take part in what Lightning does.
Program ParameterServer::make_group(Rank& rank) {
  if (workers_) {
    co_return;
  }
  roles_ = ServerRoles::of(rank.world_size(), options_.servers);
  const std::vector<int64_t> members = roles_.worker_ranks();
  const Rank::NewGroup made = rank.new_group(
      world_group, members, {communication_stream, {}, site_id(server_sites::make_group)});
  co_await rank.settle(made.ready);
  workers_ = made.group;
}

// Trained parameters are pulled; the others are drawn alike by all workers.
void ParameterServer::allocate(Rank& rank) {
  const DType dtype = plan().parameter_dtype;
  weights_ = rank.allocate(Purpose::parameter, dtype, layout_.elements());
  std::vector<Slice> parameters(replica().parameters().size());
  for (const FlatWeights::Piece& piece : layout_.pieces()) {
    parameters[piece.parameter] = weights_.part(piece.begin, piece.elements);
  }
  for (size_t index = 0; index < parameters.size(); ++index) {
    if (parameters[index].buffer == no_buffer) {
      const ParameterPlace place = replica().parameters()[index].place;
      parameters[index] =
          rank.allocate(Purpose::parameter, dtype, replica().network().parameter(place).elements());
    }
  }
  replica().state().allocate_in(rank, parameters, 0);
  said_ = rank.allocate(Purpose::metric, WorkerMessage::dtype,
                        WorkerMessage::elements * options_.servers);
}

Program ParameterServer::setup(Rank& rank, Stage stage) {
  co_await make_group(rank);
  if (!replica().is_allocated()) {
    allocate(rank);
  }
  if (stage == Stage::fit && gradients_.buffer == no_buffer) {
    gradients_ = rank.allocate(Purpose::gradient, plan().parameter_dtype, layout_.elements());
  }
  co_await call(rank, {WorkerMessage::Kind::pull, 0}, site_id(pull));
}

// One iteration

// Gradients lie side by side, ready to be sent.
Program ParameterServer::backward(Rank& rank, const StepOptions& options) {
  std::vector<Slice> missing;
  for (const FlatWeights::Piece& piece : layout_.pieces()) {
    Replica::Parameter& parameter = replica().parameters()[piece.parameter];
    if (parameter.tensor.gradient.buffer == no_buffer) {
      parameter.tensor.gradient = gradients_.part(piece.begin, piece.elements);
      parameter.gradient_is_view = true;
      missing.push_back(parameter.tensor.gradient);
    }
  }
  if (missing.size() == layout_.pieces().size()) {
    missing = {gradients_};
  }
  for (const Slice& gradient : missing) {
    elementwise(rank, Kernel::fill, {}, {gradient}, 0, {compute_stream, {}, site_id(prepare)});
  }
  co_await ReplicatedDataParallel::backward(rank, options);
}

// What Lightning calls an optimizer step. The worker's own schedule gives the learning rate; its
// clipping has seen this worker's gradient alone.
Program ParameterServer::optimizer_step(Rank& rank, const UpdateOptions& options) {
  std::vector<Slice> gradients;
  for (const FlatWeights::Piece& piece : layout_.pieces()) {
    gradients.push_back(gradients_.part(piece.begin, piece.elements));
  }
  clip_gradients(rank, options.clipping, gradients, replica().device());
  clips_ = clips_ || options.clipping.algorithm != GradientClipping::Algorithm::none;
  const double rate = options.learning_rate.value_or(plan().optimizers[options.optimizer].lr);
  co_await call(rank, {WorkerMessage::Kind::push, rate}, site_id(push));
  transfers().end_step();
}

void ParameterServer::say(Rank& rank, const WorkerMessage& message) {
  for (int32_t server = 0; server < options_.servers; ++server) {
    rank.write(said_.part(server * WorkerMessage::elements, WorkerMessage::elements),
               message.values());
  }
}

// A remote call of every server, which returns with the weights.
Program ParameterServer::call(Rank& rank, WorkerMessage message, SiteId site) {
  say(rank, message);
  const Ticket ready = rank.event({compute_stream, {}, site});
  GroupedCall all(rank, {communication_stream, {ready}, site});
  for (int32_t server = 0; server < options_.servers; ++server) {
    const int32_t to = roles_.server_rank(server);
    const FlatWeights::Part part = layout_.part(server);
    all.send(world_group, said_.part(server * WorkerMessage::elements, WorkerMessage::elements), to,
             WorkerMessage::said);
    if (message.kind == WorkerMessage::Kind::push) {
      const Slice gradient = gradients_.part(part.begin, part.elements);
      all.send(world_group, gradient, to, WorkerMessage::gradient);
      transfers().add(pushed, gradient.bytes());
    }
    if (message.kind != WorkerMessage::Kind::end) {
      const Slice weights = weights_.part(part.begin, part.elements);
      all.receive(world_group, weights, to, WorkerMessage::weights);
      if (message.kind == WorkerMessage::Kind::push) {
        transfers().add(pulled, weights.bytes());
      }
    }
  }
  const Ticket done = all.submit();
  const Ticket seen = rank.event({compute_stream, {done}, site});
  co_await rank.settle(seen);
}

Program ParameterServer::dismiss_servers(Rank& rank) {
  co_await make_group(rank);
  if (said_.buffer == no_buffer) {
    said_ = rank.allocate(Purpose::metric, WorkerMessage::dtype,
                          WorkerMessage::elements * options_.servers);
  }
  co_await call(rank, {WorkerMessage::Kind::end, 0}, site_id(end));
}

// A server

Program ParameterServer::serve(Rank& rank) {
  co_await make_group(rank);
  server_.emplace(replica(), layout_, options_, roles_, rank.id() - roles_.workers);
  co_await server_->run(rank);
}

std::vector<HeldParameter> ParameterServer::held_parameters() {
  if (!server_) {
    return ReplicatedDataParallel::held_parameters();
  }
  std::vector<HeldParameter> all;
  for (const WeightServer::Held& held : server_->held()) {
    all.push_back({held.parameter, held.first_element, held.value});
  }
  return all;
}

Task<WrittenBytes> ParameterServer::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                    SiteId site) {
  request.weights_only = true;
  return ReplicatedDataParallel::save_checkpoint(rank, request, site);
}

std::optional<Staleness> ParameterServer::staleness() const {
  return server_ ? std::optional(server_->staleness()) : std::nullopt;
}

std::vector<Transfer> ParameterServer::transfers_per_step() const {
  return server_ ? server_->transfers().all() : ReplicatedDataParallel::transfers_per_step();
}

Task<GroupId> ParameterServer::trainers(Rank& rank) {
  co_await make_group(rank);
  co_return *workers_;
}

std::vector<KnownDifference> ParameterServer::known_differences() {
  const bool all_at_once =
      options_.mode == ServerMode::sync || (options_.mode == ServerMode::batched &&
                                            options_.batch == plan().world_size - options_.servers);
  std::vector<KnownDifference> told;
  add_statistics_kept_apart(replica(), plan().world_size - options_.servers,
                            "workers push gradients and pull weights; nothing sends the running "
                            "statistics of batch norm",
                            told);
  if (clips_ && plan().world_size - options_.servers > 1) {
    told.push_back({"each worker clips its own gradient, before servers average them",
                    "leave gradient_clip_val out, or use strategy: ddp, which clips the average"});
  }
  if (all_at_once) {
    return told;
  }
  told.push_back({"servers apply gradients that workers computed by older weights", "",
                  plan().world_size - options_.servers > 1 ? DifferenceKind::of_replicas_for_now
                                                           : DifferenceKind::by_design});
  return told;
}

std::string ParameterServer::no_sync_refusal() const {
  return "the module has no no_sync: gradients are exchanged in the optimizer step";
}

}  // namespace lockstep
