#include "model/network/arithmetic/broadcast.hpp"

#include <vector>

#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

/// Which number of the factor each number of a sample meets.
std::vector<size_t> factor_of_number(const BroadcastShape& shape) {
  ensure(shape.sample.size() == shape.factor.size(), "a factor has the dimensions of a sample");
  std::vector<size_t> factors(static_cast<size_t>(elements_of(shape.sample)));
  for (size_t i = 0; i < factors.size(); ++i) {
    size_t rest = i;
    size_t stride = 1;
    for (size_t d = shape.sample.size(); d-- > 0;) {
      const auto size = static_cast<size_t>(shape.sample[d]);
      factors[i] += shape.factor[d] == 1 ? 0 : rest % size * stride;
      stride *= static_cast<size_t>(shape.factor[d]);
      rest /= size;
    }
  }
  return factors;
}

/// Calls visit(number of the batch, number of the factor).
template <class Visit>
void for_each_factor(const BroadcastShape& shape, Visit visit) {
  const std::vector<size_t> factors = factor_of_number(shape);
  const auto apart = static_cast<size_t>(shape.of_sample ? elements_of(shape.factor) : 0);
  for (size_t sample = 0; sample < static_cast<size_t>(shape.samples); ++sample) {
    for (size_t i = 0; i < factors.size(); ++i) {
      visit(sample * factors.size() + i, sample * apart + factors[i]);
    }
  }
}

}  // namespace

void multiply_forward(const Values& whole, const Values& factor, const BroadcastShape& shape,
                      Values& product) {
  ensure(whole.size() == product.size(), "a product has the size of its first factor");
  with_accumulator({&whole, &factor, &product}, [&]<class T>(T) {
    std::vector<T> y = numbers_of<T>(whole);
    const std::vector<T> f = numbers_of<T>(factor);
    for_each_factor(shape, [&](size_t at, size_t by) { y[at] *= f[by]; });
    store_numbers(y, product);
  });
}

Values factor_gradient(const Values& whole, const Values& gradient, const BroadcastShape& shape,
                       DType dtype) {
  Values result(dtype, elements_of(shape.factor) * (shape.of_sample ? shape.samples : 1));
  with_accumulator({&whole, &gradient, &result}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(whole);
    const std::vector<T> g = numbers_of<T>(gradient);
    std::vector<T> sums(static_cast<size_t>(result.size()));
    for_each_factor(shape, [&](size_t at, size_t by) { sums[by] += x[at] * g[at]; });
    store_numbers(sums, result);
  });
  return result;
}

}  // namespace lockstep
