#include "model/network/arithmetic/activation.hpp"

#include "model/core/ensure.hpp"

namespace lockstep {

void relu_forward(const Values& input, Values& output) {
  ensure(input.size() == output.size(), "a relu's operands fit");
  for (int64_t i = 0; i < input.size(); ++i) {
    const double x = input.number(i);
    output.set(i, x <= 0 ? 0 : x);
  }
}

void relu_backward(const Values& output, const Values& output_gradient, Values& input_gradient) {
  ensure(output.size() == output_gradient.size() && output.size() == input_gradient.size(),
         "a relu's operands fit");
  for (int64_t i = 0; i < output.size(); ++i) {
    input_gradient.set(i, output.number(i) <= 0 ? 0 : output_gradient.number(i));
  }
}

}  // namespace lockstep
