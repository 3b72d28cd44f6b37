#include "model/network/arithmetic/shared_batch_norm.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

int64_t channels_of(const Values& statistics) { return (statistics.size() - 1) / 2; }

}  // namespace

void own_statistics(const Values& input, const BatchNormShape& shape, double eps,
                    Values& statistics) {
  ensure(input.size() == shape.elements() && statistics.size() == 2 * shape.channels + 1,
         "a batch norm's operands fit");
  with_accumulator({&input, &statistics}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    const T count = static_cast<T>(shape.values_per_channel());
    const auto channels = static_cast<size_t>(shape.channels);
    std::vector<T> result(2 * channels + 1);
    shape.for_each_element([&](size_t i, size_t channel) { result[channel] += x[i]; });
    for (size_t channel = 0; channel < channels; ++channel) {
      result[channel] /= count;
    }
    shape.for_each_element([&](size_t i, size_t channel) {
      const T distance = x[i] - result[channel];
      result[channels + channel] += distance * distance;
    });
    for (size_t channel = 0; channel < channels; ++channel) {
      T& spread = result[channels + channel];
      spread = T{1} / std::sqrt(spread / count + static_cast<T>(eps));
    }
    result.back() = count;
    store_numbers(result, statistics);
  });
}

void merge_statistics(const Values& gathered, int64_t channels, double eps, Values& statistics) {
  const auto width = static_cast<size_t>(2 * channels + 1);
  ensure(gathered.size() % static_cast<int64_t>(width) == 0 &&
             statistics.size() == static_cast<int64_t>(width),
         "each rank gives the statistics of all channels");
  with_accumulator({&gathered, &statistics}, [&]<class T>(T) {
    const std::vector<T> all = numbers_of<T>(gathered);
    const auto epsilon = static_cast<T>(eps);
    std::vector<T> result(width);
    for (size_t channel = 0; channel < static_cast<size_t>(channels); ++channel) {
      T mean{};
      T spread{};  // sum of squared distances from the mean
      T count{};
      for (size_t begin = 0; begin < all.size(); begin += width) {
        const T own_count = all[begin + width - 1];
        const T deviation = T{1} / all[begin + static_cast<size_t>(channels) + channel];
        const T distance = all[begin + channel] - mean;
        const T both = count + own_count;
        spread += (deviation * deviation - epsilon) * own_count;
        spread += distance * distance * count * own_count / both;
        mean += distance * own_count / both;
        count = both;
      }
      result[channel] = mean;
      result[static_cast<size_t>(channels) + channel] = T{1} / std::sqrt(spread / count + epsilon);
      result.back() = count;
    }
    store_numbers(result, statistics);
  });
}

Values mean_of(const Values& statistics) { return statistics.slice(0, channels_of(statistics)); }

Values variance_of(const Values& statistics, double eps) {
  const int64_t channels = channels_of(statistics);
  Values variance = statistics.slice(channels, channels);
  for (int64_t channel = 0; channel < channels; ++channel) {
    const double deviation = 1 / variance.number(channel);
    variance.set(channel, std::max(0.0, deviation * deviation - eps));
  }
  return variance;
}

int64_t count_of(const Values& statistics) {
  return std::llround(statistics.number(statistics.size() - 1));
}

void own_gradient_sums(const Values& input, const Values& output_gradient, const Values& statistics,
                       const BatchNormShape& shape, Values& sums) {
  ensure(input.size() == shape.elements() && sums.size() == 2 * shape.channels,
         "a batch norm's operands fit");
  with_accumulator({&input, &output_gradient, &statistics}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    const std::vector<T> center = numbers_of<T>(mean_of(statistics));
    std::vector<T> result(static_cast<size_t>(sums.size()));
    shape.for_each_element([&](size_t i, size_t channel) {
      result[channel] += dy[i];
      result[center.size() + channel] += dy[i] * (x[i] - center[channel]);
    });
    store_numbers(result, sums);
  });
}

void shared_input_gradient(const Values& input, const Values& output_gradient,
                           const Values& statistics, const Values& sums, const Values* weight,
                           const BatchNormShape& shape, Values& input_gradient) {
  ensure(input.size() == shape.elements() && sums.size() == 2 * shape.channels,
         "a batch norm's operands fit");
  with_accumulator({&input, &output_gradient, &statistics}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    std::vector<T> gradient = numbers_of<T>(output_gradient);
    const std::vector<T> known = numbers_of<T>(statistics);
    const std::vector<T> sum = numbers_of<T>(sums);
    const auto channels = static_cast<size_t>(shape.channels);
    const std::vector<T> factor =
        weight == nullptr ? std::vector<T>(channels, T{1}) : numbers_of<T>(*weight);
    const T count = known.back();
    shape.for_each_element([&](size_t i, size_t channel) {
      const T inverse = known[channels + channel];
      const T slope = inverse * inverse * sum[channels + channel] / count;
      gradient[i] = (gradient[i] - sum[channel] / count - (x[i] - known[channel]) * slope) *
                    inverse * factor[channel];
    });
    store_numbers(gradient, input_gradient);
  });
}

}  // namespace lockstep
