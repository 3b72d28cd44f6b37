#include "model/network/arithmetic/convolution.hpp"

#include <algorithm>

#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

int64_t area(const Pair& sides) { return sides[0] * sides[1]; }

struct Sizes {
  explicit Sizes(const ConvolutionShape& shape)
      : in_of_group(shape.arguments.in_channels / shape.arguments.groups),
        out_of_group(shape.arguments.out_channels / shape.arguments.groups),
        input(shape.batch * shape.arguments.in_channels * area(shape.input)),
        output(shape.batch * shape.arguments.out_channels * area(shape.output)),
        weight(shape.arguments.out_channels * in_of_group * area(shape.arguments.kernel_size)) {}
  int64_t in_of_group;
  int64_t out_of_group;
  int64_t input;
  int64_t output;
  int64_t weight;
};

void ensure_fits(const Values& input, const Values& output, const Values& weight,
                 const ConvolutionShape& shape) {
  const Sizes sizes(shape);
  ensure(
      input.size() == sizes.input && output.size() == sizes.output && weight.size() == sizes.weight,
      "a convolution's operands fit");
}

/// Output places along one side whose input, through one row or column of the kernel, lies in the
/// image: place * stride + shift for place in [begin, end).
struct Places {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t stride = 1;
  int64_t shift = 0;
};

Places places_of(const ConvolutionShape& shape, size_t side, int64_t tap) {
  const Conv2dArguments& a = shape.arguments;
  const int64_t stride = a.stride[side];
  const int64_t shift = tap * a.dilation[side] - a.padding[side];
  const int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t last = shape.input[side] - 1 - shift;
  const int64_t end = last < 0 ? 0 : std::min(shape.output[side], last / stride + 1);
  return {begin, std::max(begin, end), stride, shift};
}

/// Outputs of one row that meet inputs of one row through one element of the kernel.
struct Run {
  size_t output = 0;
  size_t input = 0;
  size_t stride = 1;  ///< between the inputs
  size_t count = 0;
};

/// Calls visit(run, weight) for all products of a sample and output channel with one input channel,
/// of each output in the order of its sum.
template <class Visit>
void for_each_run_of_planes(const ConvolutionShape& shape, int64_t output, int64_t input,
                            int64_t kernel, Visit visit) {
  const Pair& window = shape.arguments.kernel_size;
  for (int64_t i = 0; i < window[0]; ++i) {
    const Places rows = places_of(shape, 0, i);
    for (int64_t j = 0; j < window[1]; ++j) {
      const Places columns = places_of(shape, 1, j);
      const auto weight = static_cast<size_t>((kernel * window[0] + i) * window[1] + j);
      for (int64_t row = rows.begin; row < rows.end && columns.begin < columns.end; ++row) {
        const int64_t y = row * rows.stride + rows.shift;
        const int64_t x = columns.begin * columns.stride + columns.shift;
        visit(Run{static_cast<size_t>((output * shape.output[0] + row) * shape.output[1] +
                                      columns.begin),
                  static_cast<size_t>((input * shape.input[0] + y) * shape.input[1] + x),
                  static_cast<size_t>(columns.stride),
                  static_cast<size_t>(columns.end - columns.begin)},
              weight);
      }
    }
  }
}

/// The same for the whole convolution: samples, output channels, input channels of the group.
template <class Visit>
void for_each_run(const ConvolutionShape& shape, Visit visit) {
  const Conv2dArguments& a = shape.arguments;
  const Sizes sizes(shape);
  for (int64_t sample = 0; sample < shape.batch; ++sample) {
    for (int64_t out = 0; out < a.out_channels; ++out) {
      const int64_t first = out / sizes.out_of_group * sizes.in_of_group;
      for (int64_t in = 0; in < sizes.in_of_group; ++in) {
        for_each_run_of_planes(shape, sample * a.out_channels + out,
                               sample * a.in_channels + first + in, out * sizes.in_of_group + in,
                               visit);
      }
    }
  }
}

/// Calls visit(output, channel) for each output element in memory order.
template <class Visit>
void for_each_output(const ConvolutionShape& shape, Visit visit) {
  const auto plane = static_cast<size_t>(area(shape.output));
  const auto channels = static_cast<size_t>(shape.arguments.out_channels);
  const size_t outputs = static_cast<size_t>(shape.batch) * channels * plane;
  for (size_t at = 0; at < outputs; ++at) {
    visit(at, at / plane % channels);
  }
}

}  // namespace

void conv2d_forward(const Values& input, const Values& weight, const Values* bias,
                    const ConvolutionShape& shape, Values& output) {
  ensure_fits(input, output, weight, shape);
  with_accumulator({&input, &weight, bias, &output}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    const std::vector<T> w = numbers_of<T>(weight);
    std::vector<T> y(static_cast<size_t>(output.size()));
    for_each_run(shape, [&](const Run& run, size_t tap) {
      const T factor = w[tap];
      for (size_t i = 0; i < run.count; ++i) {
        y[run.output + i] += factor * x[run.input + i * run.stride];
      }
    });
    if (bias != nullptr) {
      const std::vector<T> b = numbers_of<T>(*bias);
      for_each_output(shape, [&](size_t at, size_t channel) { y[at] += b[channel]; });
    }
    store_numbers(y, output);
  });
}

void conv2d_input_gradient(const Values& output_gradient, const Values& weight,
                           const ConvolutionShape& shape, Values& input_gradient) {
  conv_transpose2d_forward(output_gradient, weight, nullptr, shape, input_gradient);
}

void conv_transpose2d_forward(const Values& input, const Values& weight, const Values* bias,
                              const ConvolutionShape& mirrored, Values& output) {
  ensure_fits(output, input, weight, mirrored);
  with_accumulator({&input, &weight, bias, &output}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    const std::vector<T> w = numbers_of<T>(weight);
    std::vector<T> y(static_cast<size_t>(output.size()));
    for_each_run(mirrored, [&](const Run& run, size_t tap) {
      const T factor = w[tap];
      for (size_t i = 0; i < run.count; ++i) {
        y[run.input + i * run.stride] += factor * x[run.output + i];
      }
    });
    if (bias != nullptr) {
      const std::vector<T> b = numbers_of<T>(*bias);
      const auto plane = static_cast<size_t>(area(mirrored.input));
      for (size_t at = 0; at < y.size(); ++at) {
        y[at] += b[at / plane % b.size()];
      }
    }
    store_numbers(y, output);
  });
}

void conv2d_weight_gradient(const Values& input, const Values& output_gradient,
                            const ConvolutionShape& shape, Values& weight_gradient) {
  ensure_fits(input, output_gradient, weight_gradient, shape);
  with_accumulator({&input, &output_gradient, &weight_gradient}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    std::vector<T> dw(static_cast<size_t>(weight_gradient.size()));
    for_each_run(shape, [&](const Run& run, size_t tap) {
      T sum = dw[tap];
      for (size_t i = 0; i < run.count; ++i) {
        sum += dy[run.output + i] * x[run.input + i * run.stride];
      }
      dw[tap] = sum;
    });
    accumulate_numbers(dw, weight_gradient);
  });
}

void conv2d_bias_gradient(const Values& output_gradient, const ConvolutionShape& shape,
                          Values& bias_gradient) {
  ensure(bias_gradient.size() == shape.arguments.out_channels, "a convolution's operands fit");
  with_accumulator({&output_gradient, &bias_gradient}, [&]<class T>(T) {
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    std::vector<T> db(static_cast<size_t>(bias_gradient.size()));
    for_each_output(shape, [&](size_t at, size_t channel) { db[channel] += dy[at]; });
    accumulate_numbers(db, bias_gradient);
  });
}

}  // namespace lockstep
