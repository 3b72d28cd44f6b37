#include "model/network/execute.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/core/ensure.hpp"
#include "model/core/numbers.hpp"

#include "model/network/arithmetic/gradient_clipping.hpp"
#include "model/network/arithmetic/loss.hpp"
#include "model/network/arithmetic/low_rank.hpp"
#include "model/network/arithmetic/min_max_uint8.hpp"
#include "model/network/arithmetic/optimizer.hpp"
#include "model/network/arithmetic/placing.hpp"
#include "model/network/execute_layer.hpp"
#include "model/network/execute_update.hpp"
#include "model/network/network.hpp"

namespace lockstep {

namespace {

double scalar(const OpLists& lists, size_t index) {
  ensure(index < lists.scalars.size(), "a kernel has its scalars");
  return lists.scalars[index];
}

double scalar_if_given(const OpLists& lists, size_t index) {
  return index < lists.scalars.size() ? lists.scalars[index] : 0;
}

// read i to write i, through `change`; in place where there are no reads.
template <class Change>
void for_each_pair(const OpLists& lists, Operands& operands, Change change) {
  for (size_t i = 0; i < lists.writes.size(); ++i) {
    Values values = operands.load(lists.reads.empty() ? lists.writes[i] : lists.reads[i]);
    if (!values.empty()) {
      operands.store(lists.writes[i], change(std::move(values), lists.writes[i]));
    }
  }
}

Values rounded_to(const Values& values, DType dtype) {
  Values result(dtype, values.size());
  for (int64_t i = 0; i < values.size(); ++i) {
    result.set(i, values.number(i));
  }
  return result;
}

void add_into(const OpLists& lists, Operands& operands) {
  for (size_t i = 0; i < lists.writes.size(); ++i) {
    const Values term = operands.load(lists.reads[i]);
    Values sum = operands.load(lists.writes[i]);
    if (!term.empty() && !sum.empty()) {
      accumulate(Reduction::sum, sum, term);
      operands.store(lists.writes[i], sum);
    }
  }
}

void add_scaled_into(const OpLists& lists, Operands& operands) {
  const double factor = scalar(lists, 0);
  for (size_t i = 0; i < lists.writes.size(); ++i) {
    const Values term = operands.load(lists.reads[i]);
    Values sum = operands.load(lists.writes[i]);
    if (term.empty() || sum.empty()) {
      continue;
    }
    for (int64_t j = 0; j < std::min(sum.size(), term.size()); ++j) {
      sum.set(j, sum.number(j) + term.number(j) * factor);
    }
    operands.store(lists.writes[i], sum);
  }
}

void compress(const OpLists& lists, Operands& operands) {
  const Values numbers = operands.load(lists.reads[0]);
  if (numbers.empty()) {
    return;
  }
  const auto chunks = static_cast<int64_t>(scalar(lists, 0));
  const Values compressed = compress_min_max(numbers, chunks);
  operands.store(lists.writes[0], compressed);
  if (lists.writes.size() > 1) {
    Values largest = operands.load(lists.writes[1]);
    const Values decoded = decompress_min_max(compressed, numbers.dtype(), numbers.size(), chunks);
    const double error = compression_error(numbers, decoded);
    largest.set(0, error > largest.number(0) || std::isnan(error) ? error : largest.number(0));
    operands.store(lists.writes[1], largest);
  }
}

void decompress(const OpLists& lists, Operands& operands) {
  const Values compressed = operands.load(lists.reads[0]);
  if (!compressed.empty()) {
    const Slice& to = lists.writes[0];
    operands.store(to, decompress_min_max(compressed, to.dtype, to.elements,
                                          static_cast<int64_t>(scalar(lists, 0))));
  }
}

void average_of(const OpLists& lists, Operands& operands) {
  const Values values = operands.load(lists.reads[0]);
  if (values.empty()) {
    return;
  }
  Values sum(lists.writes[0].dtype, 1);
  for (int64_t i = 0; i < values.size(); ++i) {
    accumulate(Reduction::sum, sum, values.slice(i, 1));
  }
  divide(sum, values.size());
  operands.store(lists.writes[0], sum);
}

void sgd(const OpLists& lists, Operands& operands) {
  const Values gradient = operands.load(lists.reads[0]);
  Values parameter = operands.load(lists.writes[0]);
  if (gradient.empty() || parameter.empty()) {
    return;
  }
  const SgdOptions options{scalar(lists, 0),
                           scalar(lists, 1),
                           scalar_if_given(lists, 4),
                           scalar(lists, 2),
                           scalar_if_given(lists, 5) != 0,
                           scalar_if_given(lists, 6) != 0};
  const auto step = static_cast<int64_t>(scalar(lists, 3));
  // A scheduler that cycles the momentum may have made it 0: the buffer waits then.
  const bool has_momentum = lists.writes.size() > 1 && options.momentum != 0;
  Values momentum = has_momentum ? operands.load(lists.writes[1]) : Values();
  sgd_step(options, step, gradient, has_momentum ? &momentum : nullptr, parameter);
  operands.store(lists.writes[0], parameter);
  if (has_momentum) {
    operands.store(lists.writes[1], momentum);
  }
}

double largest_of(const Values& values) {
  double largest = 0;
  for (const double number : numbers_of<double>(values)) {
    largest = std::max(largest, std::abs(number));
  }
  return largest;
}

void adam(const OpLists& lists, Operands& operands) {
  const Values gradient = operands.load(lists.reads[0]);
  Values parameter = operands.load(lists.writes[0]);
  if (gradient.empty() || parameter.empty()) {
    return;
  }
  const AdamOptions options{scalar(lists, 0),
                            scalar(lists, 1),
                            scalar(lists, 2),
                            scalar(lists, 3),
                            scalar(lists, 4),
                            scalar(lists, 6) != 0,
                            scalar_if_given(lists, 7) != 0};
  Values first = operands.load(lists.writes[1]);
  Values second = operands.load(lists.writes[2]);
  const bool has_largest = lists.writes.size() > 3;  // amsgrad
  Values most = has_largest ? operands.load(lists.writes[3]) : Values();
  const auto step = static_cast<int64_t>(scalar(lists, 5));
  UpdateSensitivity* sensitivity = operands.sensitivity_of(lists.writes[0]);
  const double decay = options.decoupled_weight_decay ? 0 : options.weight_decay;
  const double largest =
      sensitivity == nullptr ? 0 : largest_of(gradient) + decay * largest_of(parameter);
  adam_step(options, step, gradient, first, second, parameter, has_largest ? &most : nullptr);
  if (sensitivity != nullptr) {
    add_adam_sensitivity(options, step, largest, has_largest ? most : second, *sensitivity);
  }
  if (has_largest) {
    operands.store(lists.writes[3], most);
  }
  operands.store(lists.writes[0], parameter);
  operands.store(lists.writes[1], first);
  operands.store(lists.writes[2], second);
}

void qadam(const OpLists& lists, Operands& operands) {
  const Values gradient = operands.load(lists.reads[0]);
  Values parameter = operands.load(lists.writes[0]);
  if (gradient.empty() || parameter.empty()) {
    return;
  }
  const QAdamOptions options{scalar(lists, 0), scalar(lists, 1), scalar(lists, 2), scalar(lists, 3),
                             scalar(lists, 5) != 0};
  Values first = operands.load(lists.writes[1]);
  Values second = operands.load(lists.writes[2]);
  qadam_step(options, static_cast<int64_t>(scalar(lists, 4)), gradient, first, second, parameter);
  operands.store(lists.writes[0], parameter);
  operands.store(lists.writes[1], first);
  operands.store(lists.writes[2], second);
}

void squared_norm_of(const OpLists& lists, Operands& operands) {
  std::vector<Values> gradients;
  for (const Slice& read : lists.reads) {
    gradients.push_back(operands.load(read));
  }
  operands.store(lists.writes[0], squared_norm(gradients, lists.writes[0].dtype));
}

void clip(const Op& op, const OpLists& lists, Operands& operands) {
  const bool by_norm = op.kernel == Kernel::clip_by_norm;
  const Values squared_norm = by_norm ? operands.load(lists.reads[0]) : Values();
  const double limit = scalar(lists, 0);
  for (const Slice& write : lists.writes) {
    Values gradient = operands.load(write);
    if (gradient.empty() || (by_norm && squared_norm.empty())) {
      continue;
    }
    if (by_norm) {
      clip_by_norm(limit, squared_norm, gradient);
    } else {
      clip_by_value(limit, gradient);
    }
    operands.store(write, gradient);
  }
}

void unscale(const OpLists& lists, Operands& operands) {
  const Slice& flag = lists.writes.front();
  for (const Slice& write : lists.writes.subspan(1)) {
    Values gradient = operands.load(write);
    if (gradient.empty()) {
      continue;
    }
    if (!all_finite(gradient)) {
      operands.store(flag, Values::of(flag.dtype, {1}));
    }
    scale(gradient, scalar(lists, 0));
    operands.store(write, gradient);
  }
}

void multiply(const OpLists& lists, Operands& operands) {
  const Values left = operands.load(lists.reads[0]);
  const Values right = operands.load(lists.reads[1]);
  if (left.empty() || right.empty()) {
    return;
  }
  operands.store(lists.writes[0],
                 matrix_product(product_shape(lists.scalars), left, right, lists.writes[0].dtype));
}

void swap(const OpLists& lists, Operands& operands) {
  const Values from = operands.load(lists.reads[0]);
  if (!from.empty()) {
    Values to(lists.writes[0].dtype, from.size());
    swap_outer(from, static_cast<int64_t>(scalar(lists, 0)), static_cast<int64_t>(scalar(lists, 1)),
               to);
    operands.store(lists.writes[0], to);
  }
}

void make_orthonormal(const OpLists& lists, Operands& operands) {
  Values matrix = operands.load(lists.writes[0]);
  if (!matrix.empty()) {
    orthogonalize(static_cast<int64_t>(scalar(lists, 0)), static_cast<int64_t>(scalar(lists, 1)),
                  scalar(lists, 2), matrix);
    operands.store(lists.writes[0], matrix);
  }
}

// Below this a squared norm is that of nothing (adasum.h: the root of the least positive double).
double adasum_coefficient(double dot, double squared_norm) {
  static const double least = std::sqrt(std::numeric_limits<double>::min());
  return squared_norm < least ? 1 : 1 - dot / (2 * squared_norm);
}

void adasum_of(const OpLists& lists, Operands& operands) {
  for (size_t i = 0; i < lists.writes.size(); ++i) {
    const Values one = operands.load(lists.reads[i]);
    const Values other = operands.load(lists.reads[lists.writes.size() + i]);
    Values sum = operands.load(lists.writes[i]);
    if (one.empty() || other.empty() || sum.empty()) {
      continue;
    }
    double dot = 0;
    double norm_of_one = 0;
    double norm_of_other = 0;
    for (int64_t j = 0; j < sum.size(); ++j) {
      dot += one.number(j) * other.number(j);
      norm_of_one += one.number(j) * one.number(j);
      norm_of_other += other.number(j) * other.number(j);
    }
    const double of_one = adasum_coefficient(dot, norm_of_one);
    const double of_other = adasum_coefficient(dot, norm_of_other);
    for (int64_t j = 0; j < sum.size(); ++j) {
      sum.set(j, of_one * one.number(j) + of_other * other.number(j));
    }
    operands.store(lists.writes[i], sum);
  }
}

}  // namespace

void execute_kernel(const Op& op, Operands& operands, const Network* network) {
  const OpLists& lists = op.list();
  switch (op.kernel) {
    case Kernel::timed:
    case Kernel::roofline: return;
    case Kernel::layer_forward:
    case Kernel::layer_backward:
    case Kernel::loss_forward:
    case Kernel::loss_backward:
      ensure(network != nullptr, "a layer kernel runs in a world that knows the network");
      execute_layer(op, operands, *network);
      return;
    case Kernel::sgd_step: sgd(lists, operands); return;
    case Kernel::adam_step: adam(lists, operands); return;
    case Kernel::qadam_step: qadam(lists, operands); return;
    case Kernel::optimizer_step: execute_update(lists, operands); return;
    case Kernel::fill:
      for_each_pair({{}, {}, lists.writes, {}, {}}, operands, [&](Values values, const Slice&) {
        for (int64_t i = 0; i < values.size(); ++i) {
          values.set(i, scalar(lists, 0));
        }
        return values;
      });
      return;
    case Kernel::copy:
      for_each_pair(lists, operands, [](Values values, const Slice&) { return values; });
      return;
    case Kernel::scale:
      for_each_pair(lists, operands, [&](Values values, const Slice&) {
        scale(values, scalar(lists, 0));
        return values;
      });
      return;
    case Kernel::cast:
      for_each_pair(lists, operands, [](const Values& values, const Slice& to) {
        return rounded_to(values, to.dtype);
      });
      return;
    case Kernel::swap_outer: swap(lists, operands); return;
    case Kernel::add: add_into(lists, operands); return;
    case Kernel::add_scaled: add_scaled_into(lists, operands); return;
    case Kernel::compress: compress(lists, operands); return;
    case Kernel::decompress: decompress(lists, operands); return;
    case Kernel::average: average_of(lists, operands); return;
    case Kernel::squared_norm: squared_norm_of(lists, operands); return;
    case Kernel::clip_by_norm:
    case Kernel::clip_by_value: clip(op, lists, operands); return;
    case Kernel::unscale: unscale(lists, operands); return;
    case Kernel::matrix_product: multiply(lists, operands); return;
    case Kernel::orthogonalize: make_orthonormal(lists, operands); return;
    case Kernel::adasum: adasum_of(lists, operands); return;
  }
}

}  // namespace lockstep
