#include "model/strategy/data_parallel/horovod/gradient_negotiation.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "model/strategy/data_parallel/horovod/horovod_sites.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/gradient_order.hpp"

namespace lockstep {

// What is handed over with a group never meets what is handed over by itself.
std::string gradient_name(const Network& network, ParameterPlace place, bool in_group) {
  return (in_group ? "grouped_allreduce." : "allreduce.") + network.parameter_name(place);
}

SiteId gradient_site(const Network& network, ParameterPlace place, bool in_group) {
  return site_id("horovod: " + gradient_name(network, place, in_group));
}

GradientNegotiation::GradientNegotiation(Replica& replica, std::shared_ptr<Negotiator> negotiator,
                                         const GradientNegotiationOptions& options)
    : replica_(&replica),
      negotiator_(std::move(negotiator)),
      options_(options),
      passes_left_(replica.parameters().size(), options.passes_per_step),
      handed_over_(replica.parameters().size(), false),
      done_(replica.parameters().size()),
      group_of_(replica.parameters().size()) {
  for (const OptimizerPlan& optimizer : replica.plan().optimizers) {
    std::vector<size_t> trained;
    for (size_t index = 0; index < replica.parameters().size(); ++index) {
      const Replica::Parameter& parameter = replica.parameters()[index];
      if (parameter.trainable && optimizer.holds(parameter.place.layer)) {
        trained.push_back(index);
      }
    }
    add_groups(trained);
  }
}

// The first ones have one more where they do not divide the parameters.
void GradientNegotiation::add_groups(std::span<const size_t> trained) {
  const auto count = static_cast<size_t>(options_.groups);
  const size_t all = trained.size();
  for (size_t group = 0; group < count; ++group) {
    const size_t size = all / count + (group < all % count ? 1 : 0);
    const std::span<const size_t> members = trained.first(size);
    trained = trained.subspan(size);
    for (const size_t index : members) {
      group_of_[index] = groups_.size();
    }
    groups_.push_back({{members.begin(), members.end()}, 0});
  }
}

void GradientNegotiation::begin(Rank&, bool) {}

void GradientNegotiation::gradients_ready(Rank& rank, size_t layer, Ticket done) {
  for (const size_t index : in_order_of_gradients(*replica_, layer)) {
    if (replica_->wants_gradient(replica_->parameters()[index])) {
      count_pass(rank, index, done);
    }
  }
}

// The hook of a parameter. A group goes with the last of its gradients, in its own order.
void GradientNegotiation::count_pass(Rank& rank, size_t parameter, Ticket done) {
  done_[parameter] = done;
  if (--passes_left_[parameter] != 0) {
    held_back_.push_back(parameter);
    return;
  }
  if (groups_.empty()) {
    hand_over(rank, parameter, done, false);
    return;
  }
  Group& group = groups_[group_of_[parameter]];
  if (++group.ready < group.parameters.size()) {
    held_back_.push_back(parameter);
    return;
  }
  for (const size_t member : group.parameters) {
    hand_over(rank, member, done_[member], true);
  }
}

void GradientNegotiation::hand_over(Rank& rank, size_t parameter, Ticket done, bool in_group) {
  const Replica::Parameter& of = replica_->parameters()[parameter];
  const Slice gradient = of.tensor.gradient;
  InFlight sent{parameter, {}, 0};
  if (options_.in_half_precision && gradient.dtype != DType::fp16) {
    sent.narrow = rank.allocate(Purpose::communication, DType::fp16, gradient.elements);
    done = elementwise(rank, Kernel::cast, {gradient}, {sent.narrow}, 0,
                       {replica_->compute(), {done}, site_id(horovod_sites::compress)});
  }
  const Slice travels = sent.narrow.buffer == no_buffer ? gradient : sent.narrow;
  const SiteId named = gradient_site(replica_->network(), of.place, in_group);
  const Ticket ready = rank.event({replica_->compute(), {done}, named});
  TensorRequest request;
  request.name = {RequestKind::all_reduce, in_group ? NameSpace::in_group : NameSpace::parameter,
                  static_cast<int64_t>(parameter)};
  request.dtype = travels.dtype;
  request.elements = travels.elements;
  request.reduction = options_.sums ? Reduction::sum : Reduction::avg;
  sent.handle = negotiator_->submit(rank, request, travels, {}, ready,
                                    gradient_name(replica_->network(), of.place, in_group));
  handed_over_[parameter] = true;
  in_flight_.push_back(sent);
}

// DistributedOptimizer.synchronize, which Lightning calls after every backward: what no hook has
// been called for goes now, zeros where there is no gradient, then what hooks have held back.
Program GradientNegotiation::finish(Rank& rank) {
  replica_->state().fill_missing_gradients(rank);
  const std::vector<size_t> held_back = std::exchange(held_back_, {});
  for (size_t index = 0; index < replica_->parameters().size(); ++index) {
    const bool is_held_back = std::ranges::find(held_back, index) != held_back.end();
    if (replica_->parameters()[index].trainable && !handed_over_[index] && !is_held_back) {
      hand_over(rank, index, {}, false);
    }
  }
  for (const size_t index : held_back) {
    if (!handed_over_[index]) {
      hand_over(rank, index, done_[index], false);
    }
  }
  for (Group& group : groups_) {
    group.ready = 0;
  }
  for (const InFlight& sent : std::exchange(in_flight_, {})) {
    co_await negotiator_->wait(rank, sent.handle, site_id(horovod_sites::synchronize));
    if (sent.narrow.buffer != no_buffer) {
      elementwise(rank, Kernel::cast, {sent.narrow},
                  {replica_->parameters()[sent.parameter].tensor.gradient}, 0,
                  {replica_->compute(), {}, site_id(horovod_sites::compress)});
      rank.release(sent.narrow);
    }
    handed_over_[sent.parameter] = false;
    passes_left_[sent.parameter] = options_.passes_per_step;
  }
}

void GradientNegotiation::remember(ProgramMemory& memory) const {
  std::vector<int64_t> counted;
  for (size_t index = 0; index < passes_left_.size(); ++index) {
    if (passes_left_[index] != options_.passes_per_step || handed_over_[index]) {
      counted.insert(counted.end(), {static_cast<int64_t>(index), passes_left_[index],
                                     handed_over_[index] ? 1 : 0});
      memory.tickets.push_back(done_[index]);
    }
  }
  std::vector<int64_t>& numbers = memory.numbers;
  numbers.push_back(std::ssize(counted));
  numbers.insert(numbers.end(), counted.begin(), counted.end());
  numbers.push_back(std::ssize(held_back_));
  numbers.insert(numbers.end(), held_back_.begin(), held_back_.end());
  for (const Group& group : groups_) {
    numbers.push_back(static_cast<int64_t>(group.ready));
  }
  for (const InFlight& sent : in_flight_) {
    numbers.insert(numbers.end(), {static_cast<int64_t>(sent.parameter), sent.narrow.elements,
                                   sent.handle - negotiator_->handles()});
  }
}

Program GradientNegotiation::settle(Rank&) { co_return; }  // the host has waited

}  // namespace lockstep
