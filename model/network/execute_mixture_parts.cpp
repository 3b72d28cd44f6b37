// What ranks that divide the experts of a mixture compute between their exchanges.
#include <vector>

#include "model/network/arithmetic/expert_routing.hpp"
#include "model/network/arithmetic/linear.hpp"
#include "model/network/expert_parameters.hpp"
#include "model/network/mixture.hpp"

namespace lockstep {

namespace {

/// Rows come source by source, and of each source expert by expert. Experts compute all of theirs
/// at once.
class ReceivedRows {
 public:
  ReceivedRows(const MixtureArguments& mixture, const Values& numbers) : width_(mixture.embed_dim) {
    const int64_t experts = mixture.own_experts();
    std::vector<int64_t> begins;
    int64_t begin = 0;
    for (int64_t block = 0; block < numbers.size(); ++block) {
      begins.push_back(begin);
      begin += numbers.integer(block);
    }
    for (int64_t expert = 0; expert < experts; ++expert) {
      int64_t rows = 0;
      for (int64_t block = expert; block < numbers.size(); block += experts) {
        for (int64_t row = 0; row < numbers.integer(block); ++row) {
          order_.push_back(begins[static_cast<size_t>(block)] + row);
        }
        rows += numbers.integer(block);
      }
      rows_of_.push_back(rows);
    }
  }
  const std::vector<int64_t>& rows_of() const { return rows_of_; }
  Values by_expert(const Values& received) const {
    Values sorted(received.dtype(), std::ssize(order_) * width_);
    for (size_t i = 0; i < order_.size(); ++i) {
      sorted.assign(static_cast<int64_t>(i) * width_, received.slice(order_[i] * width_, width_));
    }
    return sorted;
  }
  void put_back(const Values& sorted, Values& received) const {
    for (size_t i = 0; i < order_.size(); ++i) {
      received.assign(order_[i] * width_, sorted.slice(static_cast<int64_t>(i) * width_, width_));
    }
  }

 private:
  int64_t width_;
  std::vector<int64_t> order_;
  std::vector<int64_t> rows_of_;
};

MixturePart part_of(const LayerCall& call, size_t scalar) {
  return static_cast<MixturePart>(static_cast<int>(call.scalar(scalar)));
}

void route_forward(const MixtureArguments& mixture, LayerCall& call) {
  const ExpertRouting routing = route(call.read(0), call.read(1), mixture, call.write(0).dtype());
  call.write_cast(0, dispatched(call.read(0), routing));
  const std::vector<int64_t> counts = routing.choices_of_experts();
  for (size_t expert = 0; expert < counts.size(); ++expert) {
    const auto index = static_cast<int64_t>(expert);
    call.write(1).set_integer(index, call.write(1).integer(index) + counts[expert]);
  }
}

void compute_forward(const MixtureArguments& mixture, LayerCall& call) {
  const ReceivedRows rows(mixture, call.read(1));
  const ExpertParameters parameters(mixture, call, 2);
  const Values sorted = rows.by_expert(call.read(0));
  Values given(call.write(0).dtype(), sorted.size());
  experts_forward(sorted, parameters.weights(), rows.rows_of(), mixture, given);
  rows.put_back(given, call.write(0));
}

void combine_part_backward(const MixtureArguments& mixture, LayerCall& call) {
  const DType dtype = call.read(0).dtype();
  const ExpertRouting routing = route(call.read(1), call.read(2), mixture, dtype);
  const CombineGradients gradients = combine_backward(call.read(0), call.read(3), routing);
  call.write_cast(0, gradients.given);
  const Values scores = router_output_gradient(routing, mixture, gradients.weights, 0, dtype);
  accumulate(Reduction::sum, call.write(1), scores);
}

void compute_backward(const MixtureArguments& mixture, LayerCall& call) {
  const ReceivedRows rows(mixture, call.read(2));
  const ExpertParameters parameters(mixture, call, 3);
  const Values sorted = rows.by_expert(call.read(1));
  const Values gradient = rows.by_expert(call.read(0));
  Values of_rows(call.write(0).dtype(), sorted.size());
  ExpertGradientParts parts(mixture, call, 1);
  experts_backward(sorted, parameters.weights(), rows.rows_of(), gradient, mixture, of_rows,
                   parts.gradients());
  parts.store();
  rows.put_back(of_rows, call.write(0));
}

void route_backward(const MixtureArguments& mixture, LayerCall& call) {
  const Values& scores = call.read(0);
  const Values& input = call.read(1);
  const int64_t rows = input.size() / mixture.embed_dim;
  if (call.wants(1)) {
    linear_weight_gradient(input, scores, rows, mixture.embed_dim, mixture.num_experts,
                           call.write(1));
  }
  if (call.wants(0)) {
    linear_input_gradient(scores, call.read(2), rows, mixture.embed_dim, mixture.num_experts,
                          call.write(0));
    add_dispatched(call.read(3), route(input, call.read(2), mixture, scores.dtype()),
                   call.write(0));
  }
}

}  // namespace

void mixture_part_forward(const MixtureArguments& mixture, LayerCall& call) {
  switch (part_of(call, 3)) {
    case MixturePart::route: route_forward(mixture, call); break;
    case MixturePart::compute: compute_forward(mixture, call); break;
    case MixturePart::combine:
      combine(call.read(2), route(call.read(0), call.read(1), mixture, call.write(0).dtype()),
              call.write(0));
      break;
  }
}

void mixture_part_backward(const MixtureArguments& mixture, LayerCall& call) {
  switch (part_of(call, 2)) {
    case MixturePart::route: route_backward(mixture, call); break;
    case MixturePart::compute: compute_backward(mixture, call); break;
    case MixturePart::combine: combine_part_backward(mixture, call); break;
  }
}

}  // namespace lockstep
