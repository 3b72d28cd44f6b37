#include "model/trainer/logging/metric_exchange.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/expression/tensor.hpp"

namespace lockstep {

namespace {

constexpr int64_t most_elements = int64_t{1} << 28;

// Sizes that a call of a different meaning has left here would ask for any amount of memory.
void check_shape(const std::vector<int64_t>& shape, SiteId site) {
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || extent > most_elements) {
      elements = most_elements + 1;
      break;
    }
    elements *= extent;
    if (elements > most_elements) {
      break;
    }
  }
  if (elements > most_elements) {
    throw ProgramException(site, fmt::format("the gathered sizes {} are those of no state: the "
                                             "ranks' calls do not match",
                                             text_of_shape(shape)));
  }
}

}  // namespace

EmptyList MetricExchange::empty_list() const {
  const bool has_placeholder = interpreter_.settings().torch >= Version{2, 1, 0};
  return has_placeholder ? EmptyList::placeholder : EmptyList::nothing;
}

void MetricExchange::check_host_memory(SiteId site) {
  DeviceTensor state;
  state.device = host_device;
  interpreter_.locations().check_call(state, site);
}

Task<SharedValues> MetricExchange::all_gather(Values own, SiteId site) {
  Rank& rank = interpreter_.rank();
  const int64_t elements = own.size();
  const TensorPointer part = interpreter_.tensors().make(own.dtype(), {elements});
  const TensorPointer whole = interpreter_.tensors().make(own.dtype(), {elements * trainers_});
  if (elements > 0) {
    rank.write(part->slice, own);
  }
  interpreter_.streams().hand_over_compute();
  co_await strategy_.all_gather(rank, part->slice, whole->slice, site);
  co_return elements == 0 ? std::make_shared<const Values>(std::move(own))
                          : rank.read_shared(whole->slice);
}

Task<Gathered> MetricExchange::gather(Tensor own, SiteId site) {
  interpreter_.streams().hand_over_compute();
  co_await strategy_.barrier(interpreter_.rank(), site);
  Gathered gathered;
  gathered.ranks = trainers_;
  gathered.padded = own.shape;
  const auto dimensions = static_cast<int64_t>(own.shape.size());
  if (dimensions > 0) {
    Values shape(DType::int64, dimensions);
    for (int64_t d = 0; d < dimensions; ++d) {
      shape.set_integer(d, own.shape[static_cast<size_t>(d)]);
    }
    gathered.shapes = co_await all_gather(shape, site);
    for (int64_t r = 0; r < gathered.ranks; ++r) {
      std::vector<int64_t> of_rank;
      for (int64_t d = 0; d < dimensions; ++d) {
        const int64_t extent = gathered.shapes->integer(r * dimensions + d);
        of_rank.push_back(extent);
        int64_t& largest = gathered.padded[static_cast<size_t>(d)];
        largest = std::max(largest, extent);
      }
      check_shape(of_rank, site);
    }
    check_shape(gathered.padded, site);
  }
  Values sent = padded_values(own, gathered.padded);
  gathered.values = co_await all_gather(std::move(sent), site);
  co_return gathered;
}

Value MetricExchange::common_value(const Metric& metric, const std::vector<SharedValues>& gathered,
                                   const std::function<Value()>& compute) {
  PureCall call;
  call.function = &metric;
  call.arguments = gathered;
  call.compute = [&] { return std::make_shared<const Value>(compute()); };
  return *std::static_pointer_cast<const Value>(interpreter_.rank().result_of(call));
}

}  // namespace lockstep
