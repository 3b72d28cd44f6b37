// hvd.broadcast_optimizer_state, and what groups of gradients send beside it.
#include <fmt/format.h>

#include <algorithm>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/data_parallel/horovod/horovod.hpp"
#include "model/strategy/data_parallel/horovod/horovod_sites.hpp"
#include "model/strategy/data_parallel/horovod/optimizer_state_names.hpp"

namespace lockstep {

namespace {

constexpr int64_t bytes_of_pickle = 14;  ///< around what an object holds
constexpr int64_t bytes_of_none = 21;    ///< an entry of it that holds None, with its key

}  // namespace

// hvd.broadcast_optimizer_state: a step with zero gradients makes the state, whatever else it does;
// then rank 0's state becomes everybody's, one broadcast for each tensor, and its options travel as
// one pickled object.
Program Horovod::send_optimizer(Rank& rank, size_t optimizer) {
  replica().zero_gradients(rank, optimizer, false);
  replica().state().fill_missing_gradients(rank);
  UpdateOptions update;
  update.optimizer = optimizer;
  replica().optimizer_step(rank, update, site_id(horovod_sites::first_step));
  if (rank.world_size() == 1) {
    co_return;
  }
  const OptimizerPlan& plan_of = plan().optimizers[optimizer];
  const auto counters = static_cast<size_t>(rule_of(plan_of.kind).counters());
  std::vector<StateTensor> tensors;
  OptimizerStateNames names(plan_of);
  std::vector<std::string> without_state;
  for (const Replica::Parameter& parameter : replica().parameters()) {
    if (parameter.trainable && plan_of.holds(parameter.place.layer)) {
      const std::vector<Slice>& state = parameter.tensor.state;
      const std::vector<std::string> of_parameter = names.next(state.size());
      for (size_t i = 0; i < of_parameter.size(); ++i) {
        tensors.push_back({of_parameter[i], i < counters ? Slice{} : state[i - counters]});
      }
      // torch 1.x keeps a state of None for each updated parameter where SGD has no momentum.
      if (of_parameter.empty()) {
        without_state.push_back(names.next(1).front());
      }
    }
  }
  const auto name = static_cast<int64_t>(optimizer) << 32;
  co_await send_state(rank, tensors, name);
  constexpr int64_t bytes_of_option = 17;  // its name with the number of its group, and its value
  const int64_t bytes_of_options =
      bytes_of_pickle + bytes_of_option * (rule_of(plan_of.kind).group_entries() - 1);
  const int64_t received = co_await send_object(
      rank, negotiator_, bytes_of_options + bytes_of_none * std::ssize(without_state), name,
      "dict");
  // Every entry of rank 0's object is looked up in this rank's own state.
  if ((received - bytes_of_options) / bytes_of_none > std::ssize(without_state)) {
    throw ProgramException(site_id(horovod_sites::take_state),
                           fmt::format("KeyError: '{}'", names.next(1).front()));
  }
}

// DistributedOptimizer with groups: all ranks take rank 0's order of the parameters' names.
Program Horovod::send_names(Rank& rank, size_t optimizer) {
  constexpr int64_t bytes_around_name = 3;
  int64_t bytes = bytes_of_pickle;
  for (const Replica::Parameter& parameter : replica().parameters()) {
    if (parameter.trainable && plan().optimizers[optimizer].holds(parameter.place.layer)) {
      bytes += bytes_around_name + std::ssize(replica().network().parameter_name(parameter.place));
    }
  }
  constexpr int64_t behind_state = int64_t{1} << 31;
  co_await send_object(rank, of_gradients(), bytes,
                       static_cast<int64_t>(optimizer) << 32 | behind_state, "list");
}

// Those without a slice have one element, as a count of steps has.
Program Horovod::send_state(Rank& rank, std::vector<StateTensor> tensors, int64_t name) {
  const auto counters = std::ranges::count_if(
      tensors, [](const StateTensor& tensor) { return tensor.value.buffer == no_buffer; });
  const Slice counts =
      rank.allocate(Purpose::communication, DType::fp32, std::max<int64_t>(counters, 1));
  std::vector<int64_t> handles;
  int64_t counter = 0;
  for (const StateTensor& tensor : tensors) {
    const Slice sent = tensor.value.buffer == no_buffer ? counts.part(counter++, 1) : tensor.value;
    const TensorRequest request = request_of(RequestKind::broadcast, NameSpace::optimizer_state,
                                             name | static_cast<int64_t>(handles.size()), sent);
    const Ticket ready = rank.event({compute_stream, {}, broadcast_site(tensor.name)});
    handles.push_back(
        negotiator_->submit(rank, request, sent, {}, ready, broadcast_name(tensor.name)));
  }
  for (const int64_t handle : handles) {
    co_await negotiator_->wait(rank, handle, site_id(horovod_sites::send_optimizer));
  }
  rank.release(counts);
}

// hvd.broadcast_object: the size of what pickle makes of it, then that, for which the others make
// room by rank 0's size. Gives that size.
Task<int64_t> Horovod::send_object(Rank& rank, std::shared_ptr<Negotiator> among, int64_t bytes,
                                   int64_t name, std::string_view type) {
  const SiteId site = site_id(horovod_sites::send_optimizer);
  // Ranks may have objects of different sizes, so that this number is needed in every run.
  const Slice size = rank.allocate(Purpose::metric, DType::int32, 1);
  Values own(DType::int32, 1);
  own.set_integer(0, bytes);
  rank.write(size, own);
  int64_t received = bytes;
  for (const bool is_size : {true, false}) {
    const Slice part =
        is_size ? size : rank.allocate(Purpose::communication, DType::uint8, received);
    const std::string part_name = fmt::format("{}.{}", type, is_size ? "sz" : "t");
    const TensorRequest request =
        request_of(RequestKind::broadcast, NameSpace::object, name | (is_size ? 0 : 1), part);
    const Ticket ready = rank.event({compute_stream, {}, broadcast_site(part_name)});
    const int64_t handle = among->submit(rank, request, part, {}, ready, broadcast_name(part_name));
    co_await among->wait(rank, handle, site);
    if (is_size) {
      received = rank.read(size).integer(0);
      if (received < 0) {  // it was damaged on its way
        throw ProgramException(site,
                               "RuntimeError: Trying to create tensor with negative dimension");
      }
    }
    rank.release(part);
  }
  co_return received;
}

}  // namespace lockstep
