#include "model/trainer/metric_exchange.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/scenario/tensor.hpp"

namespace lockstep {

namespace {

constexpr int64_t most_elements = int64_t{1} << 28;

// Visits where each element of a tensor lies in one that is at least as large in every dimension.
template <class Visit>
void for_each_position(const std::vector<int64_t>& shape, const std::vector<int64_t>& padded,
                       Visit visit) {
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    elements *= extent;
  }
  for (int64_t i = 0; i < elements; ++i) {
    int64_t rest = i;
    int64_t at = 0;
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      at += rest % shape[d] * stride;
      rest /= shape[d];
      stride *= padded[d];
    }
    visit(i, at);
  }
}

void copy_element(const Values& from, int64_t at, Values& to, int64_t index) {
  if (is_floating(from.dtype())) {
    to.set(index, from.number(at));
  } else {
    to.set_integer(index, from.integer(at));
  }
}

Values padded_values(const Tensor& own, const std::vector<int64_t>& padded) {
  if (own.shape == padded) {
    return own.values;
  }
  Values values(own.values.dtype(), element_count(padded));
  for_each_position(own.shape, padded,
                    [&](int64_t i, int64_t at) { copy_element(own.values, i, values, at); });
  return values;
}

Tensor cut(const Values& all, int64_t begin, const std::vector<int64_t>& shape,
           const std::vector<int64_t>& padded) {
  const int64_t elements = element_count(padded);
  if (shape == padded) {
    return {shape, elements == 0 ? Values(all.dtype(), 0) : all.slice(begin, elements)};
  }
  Tensor part{shape, Values(all.dtype(), element_count(shape))};
  for_each_position(shape, padded,
                    [&](int64_t i, int64_t at) { copy_element(all, begin + at, part.values, i); });
  return part;
}

// Sizes that a call of another meaning has left here would ask for any amount of memory.
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
                                             "ranks' calls do not belong together",
                                             text_of_shape(shape)));
  }
}

}  // namespace

void MetricExchange::check_host_memory(SiteId site) {
  if (!interpreter_.settings().gloo) {
    throw ProgramException(site, "No backend type associated with device type cpu");
  }
}

Task<Values> MetricExchange::all_gather(Values own, SiteId site) {
  Rank& rank = interpreter_.rank();
  const int64_t elements = own.size();
  const TensorPointer part = interpreter_.tensors().make(own.dtype(), {elements});
  const TensorPointer whole = interpreter_.tensors().make(
      own.dtype(), {elements * strategy_.replicas(interpreter_.rank())});
  if (elements > 0) {
    rank.write(part->slice, own);
  }
  interpreter_.hand_over_compute_stream();
  co_await strategy_.all_gather(rank, part->slice, whole->slice, site);
  co_return elements == 0 ? own : rank.read(whole->slice);
}

Task<std::vector<Tensor>> MetricExchange::gather(Tensor own, SiteId site) {
  interpreter_.hand_over_compute_stream();
  co_await strategy_.barrier(interpreter_.rank(), site);
  const int64_t ranks = strategy_.replicas(interpreter_.rank());
  const auto dimensions = static_cast<int64_t>(own.shape.size());
  std::vector<std::vector<int64_t>> shapes(static_cast<size_t>(ranks));
  std::vector<int64_t> padded = own.shape;
  if (dimensions > 0) {
    Values shape(DType::int64, dimensions);
    for (int64_t d = 0; d < dimensions; ++d) {
      shape.set_integer(d, own.shape[static_cast<size_t>(d)]);
    }
    const Values all = co_await all_gather(shape, site);
    for (int64_t r = 0; r < ranks; ++r) {
      for (int64_t d = 0; d < dimensions; ++d) {
        const int64_t extent = all.integer(r * dimensions + d);
        shapes[static_cast<size_t>(r)].push_back(extent);
        padded[static_cast<size_t>(d)] = std::max(padded[static_cast<size_t>(d)], extent);
      }
      check_shape(shapes[static_cast<size_t>(r)], site);
    }
    check_shape(padded, site);
  }
  Values sent = padded_values(own, padded);
  const Values all = co_await all_gather(std::move(sent), site);
  std::vector<Tensor> result;
  const int64_t elements = element_count(padded);
  for (int64_t r = 0; r < ranks; ++r) {
    const bool is_own = r == strategy_.replica_index(interpreter_.rank());
    result.push_back(is_own ? own : cut(all, r * elements, shapes[static_cast<size_t>(r)], padded));
  }
  co_return result;
}

}  // namespace lockstep
