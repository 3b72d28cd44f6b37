#include "model/metric/gathered.hpp"

#include "model/expression/tensor.hpp"

namespace lockstep {

namespace {

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

}  // namespace

Values padded_values(const Tensor& own, const std::vector<int64_t>& padded) {
  if (own.shape == padded) {
    return own.values;
  }
  Values values(own.values.dtype(), element_count(padded));
  for_each_position(own.shape, padded,
                    [&](int64_t i, int64_t at) { copy_element(own.values, i, values, at); });
  return values;
}

std::vector<Tensor> Gathered::parts() const {
  const auto dimensions = static_cast<int64_t>(padded.size());
  const int64_t elements = element_count(padded);
  std::vector<Tensor> result;
  result.reserve(static_cast<size_t>(ranks));
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<int64_t> shape;
    for (int64_t d = 0; d < dimensions; ++d) {
      shape.push_back(shapes->integer(rank * dimensions + d));
    }
    result.push_back(cut(*values, rank * elements, shape, padded));
  }
  return result;
}

}  // namespace lockstep
