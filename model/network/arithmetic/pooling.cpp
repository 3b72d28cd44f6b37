#include "model/network/arithmetic/pooling.hpp"

#include <algorithm>
#include <cmath>

#include "model/network/arithmetic.hpp"
#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

/// A range of rows or columns within the image, and how many count in an average.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t counted = 0;
};

Range range_of(const PoolingShape& shape, size_t side, int64_t place) {
  const int64_t size = shape.input[side];
  if (shape.pooling == Pooling::adaptive_average) {
    const int64_t parts = shape.output[side];
    const int64_t begin = place * size / parts;
    const int64_t end = ((place + 1) * size + parts - 1) / parts;
    return {begin, end, end - begin};
  }
  const Pool2dArguments& window = shape.window;
  const int64_t begin = place * window.stride[side] - window.padding[side];
  const int64_t end = std::min(begin + window.kernel_size[side], size + window.padding[side]);
  return {std::max<int64_t>(begin, 0), std::min(end, size), end - begin};
}

struct Window {
  Range rows;
  Range columns;
  int64_t plane = 0;
  int64_t counted() const { return rows.counted * columns.counted; }
};

/// Calls visit(output, window) for each output element in memory order.
template <class Visit>
void for_each_window(const PoolingShape& shape, Visit visit) {
  size_t output = 0;
  for (int64_t plane = 0; plane < shape.planes; ++plane) {
    for (int64_t row = 0; row < shape.output[0]; ++row) {
      for (int64_t column = 0; column < shape.output[1]; ++column) {
        visit(output++, Window{range_of(shape, 0, row), range_of(shape, 1, column), plane});
      }
    }
  }
}

/// Calls visit(input) for each element of a window that lies in the image.
template <class Visit>
void for_each_input(const PoolingShape& shape, const Window& window, Visit visit) {
  for (int64_t y = window.rows.begin; y < window.rows.end; ++y) {
    for (int64_t x = window.columns.begin; x < window.columns.end; ++x) {
      visit(static_cast<size_t>((window.plane * shape.input[0] + y) * shape.input[1] + x));
    }
  }
}

template <class T>
size_t greatest_of(const std::vector<T>& x, const PoolingShape& shape, const Window& window) {
  const int64_t row = window.plane * shape.input[0] + window.rows.begin;
  auto greatest = static_cast<size_t>(row * shape.input[1] + window.columns.begin);
  for_each_input(shape, window, [&](size_t at) {
    if (x[at] > x[greatest] || (std::isnan(x[at]) && !std::isnan(x[greatest]))) {
      greatest = at;
    }
  });
  return greatest;
}

void ensure_fits(const Values& input, const Values& output, const PoolingShape& shape) {
  ensure(input.size() == shape.planes * shape.input[0] * shape.input[1] &&
             output.size() == shape.planes * shape.output[0] * shape.output[1],
         "a pooling's operands fit");
  for (const size_t side : {size_t{0}, size_t{1}}) {
    if (shape.pooling != Pooling::adaptive_average &&
        2 * shape.window.padding[side] > shape.window.kernel_size[side]) {
      throw ArithmeticError("the padding of a pooling is more than half of its kernel",
                            "write a smaller padding or a larger kernel_size");
    }
  }
}

}  // namespace

void pool2d_forward(const Values& input, const PoolingShape& shape, Values& output) {
  ensure_fits(input, output, shape);
  with_accumulator({&input, &output}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    std::vector<T> y(static_cast<size_t>(output.size()));
    for_each_window(shape, [&](size_t at, const Window& window) {
      if (shape.pooling == Pooling::greatest) {
        y[at] = x[greatest_of(x, shape, window)];
        return;
      }
      for_each_input(shape, window, [&](size_t from) { y[at] += x[from]; });
      y[at] /= static_cast<T>(window.counted());
    });
    store_numbers(y, output);
  });
}

void pool2d_input_gradient(const Values& input, const Values& output_gradient,
                           const PoolingShape& shape, Values& input_gradient) {
  ensure_fits(input, output_gradient, shape);
  ensure_fits(input_gradient, output_gradient, shape);
  with_accumulator({&input, &output_gradient, &input_gradient}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    std::vector<T> dx(x.size());
    for_each_window(shape, [&](size_t at, const Window& window) {
      if (shape.pooling == Pooling::greatest) {
        dx[greatest_of(x, shape, window)] += dy[at];
        return;
      }
      const T share = dy[at] / static_cast<T>(window.counted());
      for_each_input(shape, window, [&](size_t to) { dx[to] += share; });
    });
    store_numbers(dx, input_gradient);
  });
}

}  // namespace lockstep
