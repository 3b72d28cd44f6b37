#include "model/network/arithmetic/expert_routing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/network/arithmetic/linear.hpp"
#include "model/network/arithmetic/numbers.hpp"
#include "model/network/arithmetic/vectors.hpp"

namespace lockstep {

namespace {

double rounded_number(DType dtype, double number) { return Values::of(dtype, {number}).number(0); }

Values probabilities_of(const Values& input, const Values& router, const MixtureArguments& mixture,
                        DType dtype) {
  const int64_t rows = input.size() / mixture.embed_dim;
  Values scores(dtype, rows * mixture.num_experts);
  linear_forward(input, router, nullptr, rows, mixture.embed_dim, mixture.num_experts, scores);
  const bool is_double = dtype == DType::fp64;
  Values probabilities(is_double ? DType::fp64 : DType::fp32, scores.size());
  with_accumulator({&scores}, [&]<class T>(T) {
    std::vector<T> all = numbers_of<T>(scores);
    for (auto row = all.begin(); row != all.end(); row += mixture.num_experts) {
      std::vector<T> line(row, row + mixture.num_experts);
      softmax_in_place(line);
      std::ranges::copy(line, row);
    }
    store_numbers(all, probabilities);
  });
  return probabilities;
}

void choose_experts(const MixtureArguments& mixture, DType dtype, ExpertRouting& routing) {
  const int64_t experts = mixture.num_experts;
  std::vector<int64_t> order(static_cast<size_t>(experts));
  for (int64_t row = 0; row < routing.rows; ++row) {
    const auto probability = [&](int64_t expert) {
      return routing.probabilities.number(row * experts + expert);
    };
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order,
                             [&](int64_t a, int64_t b) { return probability(a) > probability(b); });
    double sum = 0;
    for (int64_t turn = 0; turn < routing.top_k; ++turn) {
      sum += probability(order[static_cast<size_t>(turn)]);
    }
    sum = rounded_number(routing.probabilities.dtype(), sum);
    for (int64_t turn = 0; turn < routing.top_k; ++turn) {
      const int64_t expert = order[static_cast<size_t>(turn)];
      const double weight = probability(expert) / (mixture.renormalized ? sum : 1);
      routing.chosen.push_back(expert);
      routing.weights.push_back(
          rounded_number(dtype, rounded_number(routing.probabilities.dtype(), weight)));
    }
  }
}

/// Calls `each` with the number of a row that is sent, and the choice that sends it.
template <class Each>
void for_each_taken(const ExpertRouting& routing, Each each) {
  int64_t sent = 0;
  for (const std::vector<int64_t>& choices : routing.taken) {
    for (const int64_t choice : choices) {
      each(sent++, choice);
    }
  }
}

int64_t width_of(const Values& rows, int64_t count) { return count == 0 ? 0 : rows.size() / count; }

}  // namespace

int64_t ExpertRouting::taken_choices() const {
  return std::accumulate(
      taken.begin(), taken.end(), int64_t{0},
      [](int64_t sum, const std::vector<int64_t>& choices) { return sum + std::ssize(choices); });
}

std::vector<int64_t> ExpertRouting::choices_of_experts() const {
  std::vector<int64_t> counts(taken.size());
  for (const int64_t expert : chosen) {
    ++counts[static_cast<size_t>(expert)];
  }
  return counts;
}

int64_t expert_capacity(const MixtureArguments& mixture, int64_t rows) {
  if (!mixture.capacity_factor) {
    return rows;  // a token chooses an expert once
  }
  const double share =
      static_cast<double>(rows * mixture.top_k) / static_cast<double>(mixture.num_experts);
  return static_cast<int64_t>(
      std::min(std::ceil(share * *mixture.capacity_factor), static_cast<double>(rows)));
}

ExpertRouting route(const Values& input, const Values& router, const MixtureArguments& mixture,
                    DType dtype) {
  ExpertRouting routing;
  routing.rows = input.size() / mixture.embed_dim;
  routing.top_k = mixture.top_k;
  routing.probabilities = probabilities_of(input, router, mixture, dtype);
  choose_experts(mixture, dtype, routing);
  routing.taken.resize(static_cast<size_t>(mixture.num_experts));
  const int64_t capacity = expert_capacity(mixture, routing.rows);
  for (int64_t turn = 0; turn < routing.top_k; ++turn) {
    for (int64_t row = 0; row < routing.rows; ++row) {
      const int64_t choice = row * routing.top_k + turn;
      const auto expert = static_cast<size_t>(routing.chosen[static_cast<size_t>(choice)]);
      if (std::ssize(routing.taken[expert]) < capacity) {
        routing.taken[expert].push_back(choice);
      }
    }
  }
  return routing;
}

Values dispatched(const Values& input, const ExpertRouting& routing) {
  const int64_t width = width_of(input, routing.rows);
  Values sent(input.dtype(), routing.taken_choices() * width);
  for_each_taken(routing, [&](int64_t at, int64_t choice) {
    sent.assign(at * width, input.slice(choice / routing.top_k * width, width));
  });
  return sent;
}

void add_dispatched(const Values& sent, const ExpertRouting& routing, Values& rows) {
  const int64_t width = width_of(rows, routing.rows);
  for_each_taken(routing, [&](int64_t at, int64_t choice) {
    const int64_t to = choice / routing.top_k * width;
    for (int64_t i = 0; i < width; ++i) {
      rows.set(to + i, rows.number(to + i) + sent.number(at * width + i));
    }
  });
}

void combine(const Values& given, const ExpertRouting& routing, Values& output) {
  output = Values(output.dtype(), output.size());
  const int64_t width = width_of(output, routing.rows);
  for_each_taken(routing, [&](int64_t at, int64_t choice) {
    const double weight = routing.weights[static_cast<size_t>(choice)];
    const int64_t to = choice / routing.top_k * width;
    for (int64_t i = 0; i < width; ++i) {
      const double scaled = rounded_number(output.dtype(), given.number(at * width + i) * weight);
      output.set(to + i, output.number(to + i) + scaled);
    }
  });
}

CombineGradients combine_backward(const Values& output_gradient, const Values& given,
                                  const ExpertRouting& routing) {
  CombineGradients gradients{Values(given.dtype(), given.size()),
                             std::vector<double>(routing.weights.size())};
  const int64_t width = width_of(output_gradient, routing.rows);
  with_accumulator({&output_gradient, &given}, [&]<class T>(T) {
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    const std::vector<T> y = numbers_of<T>(given);
    for_each_taken(routing, [&](int64_t at, int64_t choice) {
      const auto from = static_cast<size_t>(choice / routing.top_k * width);
      const auto weight = static_cast<T>(routing.weights[static_cast<size_t>(choice)]);
      for (int64_t i = 0; i < width; ++i) {
        gradients.given.set(at * width + i,
                            static_cast<double>(dy[from + static_cast<size_t>(i)] * weight));
      }
      gradients.weights[static_cast<size_t>(choice)] =
          static_cast<double>(dot(dy, from, y, static_cast<size_t>(at * width), width));
    });
  });
  return gradients;
}

namespace {

/// What the weights' gradients are to the probabilities of one row.
template <class T>
void add_weight_gradients(const ExpertRouting& routing, const MixtureArguments& mixture,
                          const std::vector<double>& weight_gradients, int64_t row,
                          const std::vector<T>& probabilities, std::vector<T>& gradient) {
  const auto first = static_cast<size_t>(row * routing.top_k);
  const auto turns = static_cast<size_t>(routing.top_k);
  T sum = 0;
  T weighted = 0;
  for (size_t i = first; i < first + turns; ++i) {
    sum += probabilities[static_cast<size_t>(routing.chosen[i])];
  }
  for (size_t i = first; i < first + turns; ++i) {
    weighted += static_cast<T>(weight_gradients[i]) *
                probabilities[static_cast<size_t>(routing.chosen[i])] / sum;
  }
  for (size_t i = first; i < first + turns; ++i) {
    const T own = static_cast<T>(weight_gradients[i]);
    gradient[static_cast<size_t>(routing.chosen[i])] +=
        mixture.renormalized ? (own - weighted) / sum : own;
  }
}

}  // namespace

Values router_output_gradient(const ExpertRouting& routing, const MixtureArguments& mixture,
                              const std::vector<double>& weight_gradients, double aux_factor,
                              DType dtype) {
  const int64_t experts = mixture.num_experts;
  const auto rows = static_cast<double>(routing.rows);
  const std::vector<int64_t> choices = routing.choices_of_experts();
  Values result(dtype, routing.rows * experts);
  with_accumulator({&routing.probabilities}, [&]<class T>(T) {
    const std::vector<T> all = numbers_of<T>(routing.probabilities);
    for (int64_t row = 0; row < routing.rows; ++row) {
      const auto begin = all.begin() + row * experts;
      const std::vector<T> probabilities(begin, begin + experts);
      std::vector<T> gradient(static_cast<size_t>(experts));
      add_weight_gradients(routing, mixture, weight_gradients, row, probabilities, gradient);
      for (size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] += static_cast<T>(aux_factor * static_cast<double>(experts) *
                                      static_cast<double>(choices[i]) / rows / rows);
      }
      const T mean = dot(probabilities, 0, gradient, 0, experts);
      for (size_t i = 0; i < gradient.size(); ++i) {
        result.set(row * experts + static_cast<int64_t>(i),
                   static_cast<double>(probabilities[i] * (gradient[i] - mean)));
      }
    }
  });
  return result;
}

double load_balancing_loss(const ExpertRouting& routing, const MixtureArguments& mixture) {
  const auto rows = static_cast<double>(routing.rows);
  const std::vector<int64_t> choices = routing.choices_of_experts();
  double sum = 0;
  for (int64_t expert = 0; expert < mixture.num_experts; ++expert) {
    double probability = 0;
    for (int64_t row = 0; row < routing.rows; ++row) {
      probability += routing.probabilities.number(row * mixture.num_experts + expert);
    }
    sum += static_cast<double>(choices[static_cast<size_t>(expert)]) / rows * probability / rows;
  }
  return sum * static_cast<double>(mixture.num_experts);
}

}  // namespace lockstep
