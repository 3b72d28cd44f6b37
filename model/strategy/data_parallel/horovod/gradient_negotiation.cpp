#include "model/strategy/data_parallel/horovod/gradient_negotiation.hpp"

#include <algorithm>
#include <utility>

#include "model/strategy/data_parallel/horovod/horovod_sites.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

std::string gradient_name(const Network& network, ParameterPlace place) {
  return "allreduce." + network.parameter_name(place);
}

SiteId gradient_site(const Network& network, ParameterPlace place) {
  return site_id("horovod: " + gradient_name(network, place));
}

GradientNegotiation::GradientNegotiation(Replica& replica, std::shared_ptr<Negotiator> negotiator,
                                         const GradientNegotiationOptions& options)
    : replica_(&replica),
      negotiator_(std::move(negotiator)),
      options_(options),
      passes_left_(replica.parameters().size(), options.passes_per_step),
      handed_over_(replica.parameters().size(), false) {}

void GradientNegotiation::begin(Rank&, bool) {}

void GradientNegotiation::gradients_ready(Rank& rank, size_t layer, Ticket done) {
  std::vector<size_t> parameters = replica_->trainable_of(layer);
  std::reverse(parameters.begin(), parameters.end());  // the bias comes before the weight
  for (const size_t index : parameters) {
    if (replica_->wants_gradient(replica_->parameters()[index]) && --passes_left_[index] == 0) {
      hand_over(rank, index, done);
    }
  }
}

void GradientNegotiation::hand_over(Rank& rank, size_t parameter, Ticket done) {
  const Replica::Parameter& of = replica_->parameters()[parameter];
  const Slice gradient = of.tensor.gradient;
  InFlight sent{parameter, {}, 0};
  if (options_.in_half_precision && gradient.dtype != DType::fp16) {
    sent.narrow = rank.allocate(Purpose::communication, DType::fp16, gradient.elements);
    done = elementwise(rank, Kernel::cast, {gradient}, {sent.narrow}, 0,
                       {replica_->compute(), {done}, site_id(horovod_sites::compress)});
  }
  const Slice travels = sent.narrow.buffer == no_buffer ? gradient : sent.narrow;
  const Ticket ready =
      rank.event({replica_->compute(), {done}, gradient_site(replica_->network(), of.place)});
  TensorRequest request;
  request.name = {RequestKind::all_reduce, NameSpace::parameter, static_cast<int64_t>(parameter)};
  request.dtype = travels.dtype;
  request.elements = travels.elements;
  request.averages = true;
  sent.handle = negotiator_->submit(rank, request, travels, {}, ready);
  handed_over_[parameter] = true;
  in_flight_.push_back(sent);
}

// DistributedOptimizer.synchronize, which Lightning calls after every backward: what no hook has
// handed over goes now, zeros where there is no gradient.
Program GradientNegotiation::finish(Rank& rank) {
  replica_->fill_missing_gradients(rank);
  for (size_t index = 0; index < replica_->parameters().size(); ++index) {
    if (replica_->parameters()[index].trainable && !handed_over_[index]) {
      hand_over(rank, index, {});
    }
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

Program GradientNegotiation::settle(Rank&) { co_return; }  // the host has waited

}  // namespace lockstep
