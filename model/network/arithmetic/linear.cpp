#include "model/network/arithmetic/linear.hpp"

#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

void linear_forward(const Values& input, const Values& weight, const Values* bias, int64_t rows,
                    int64_t in, int64_t out, Values& output) {
  ensure(input.size() == rows * in && weight.size() == out * in && output.size() == rows * out &&
             (bias == nullptr || bias->size() == out),
         "a linear layer's operands fit");
  with_accumulator({&input, &weight, bias, &output}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    const std::vector<T> w = numbers_of<T>(weight);
    const std::vector<T> b = bias == nullptr ? std::vector<T>() : numbers_of<T>(*bias);
    std::vector<T> y(static_cast<size_t>(rows * out));
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t o = 0; o < out; ++o) {
        T sum = 0;
        for (int64_t i = 0; i < in; ++i) {
          sum += x[static_cast<size_t>(row * in + i)] * w[static_cast<size_t>(o * in + i)];
        }
        y[static_cast<size_t>(row * out + o)] = b.empty() ? sum : sum + b[static_cast<size_t>(o)];
      }
    }
    store_numbers(y, output);
  });
}

void linear_input_gradient(const Values& output_gradient, const Values& weight, int64_t rows,
                           int64_t in, int64_t out, Values& input_gradient) {
  ensure(output_gradient.size() == rows * out && weight.size() == out * in &&
             input_gradient.size() == rows * in,
         "a linear layer's operands fit");
  with_accumulator({&output_gradient, &weight, &input_gradient}, [&]<class T>(T) {
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    const std::vector<T> w = numbers_of<T>(weight);
    std::vector<T> dx(static_cast<size_t>(rows * in));
    // The innermost loop walks the weight's rows; each sum still runs over increasing outputs.
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t o = 0; o < out; ++o) {
        const T factor = dy[static_cast<size_t>(row * out + o)];
        for (int64_t i = 0; i < in; ++i) {
          dx[static_cast<size_t>(row * in + i)] += factor * w[static_cast<size_t>(o * in + i)];
        }
      }
    }
    store_numbers(dx, input_gradient);
  });
}

void linear_weight_gradient(const Values& input, const Values& output_gradient, int64_t rows,
                            int64_t in, int64_t out, Values& weight_gradient) {
  ensure(input.size() == rows * in && output_gradient.size() == rows * out &&
             weight_gradient.size() == out * in,
         "a linear layer's operands fit");
  with_accumulator({&input, &output_gradient, &weight_gradient}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    std::vector<T> dw(static_cast<size_t>(out * in));
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t o = 0; o < out; ++o) {
        const T factor = dy[static_cast<size_t>(row * out + o)];
        for (int64_t i = 0; i < in; ++i) {
          dw[static_cast<size_t>(o * in + i)] += factor * x[static_cast<size_t>(row * in + i)];
        }
      }
    }
    accumulate_numbers(dw, weight_gradient);
  });
}

void bias_forward(const Values& input, const Values& bias, const BiasShape& shape, Values& output) {
  ensure(input.size() == shape.rows * shape.features && bias.size() == shape.features &&
             output.size() == input.size(),
         "a bias's operands fit");
  with_accumulator({&input, &bias, &output}, [&]<class T>(T) {
    std::vector<T> y = numbers_of<T>(input);
    std::vector<T> b = numbers_of<T>(bias);
    for (T& number : b) {
      number /= static_cast<T>(shape.shares);
    }
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] += b[i % b.size()];
    }
    store_numbers(y, output);
  });
}

void bias_weight_gradient(const Values& output_gradient, int64_t rows, int64_t features,
                          Values& bias_gradient) {
  ensure(output_gradient.size() == rows * features && bias_gradient.size() == features,
         "a bias's operands fit");
  with_accumulator({&output_gradient, &bias_gradient}, [&]<class T>(T) {
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    std::vector<T> db(static_cast<size_t>(features));
    for (size_t i = 0; i < dy.size(); ++i) {
      db[i % db.size()] += dy[i];
    }
    accumulate_numbers(db, bias_gradient);
  });
}

}  // namespace lockstep
