#include "model/network/arithmetic/contrastive_loss.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

constexpr double least_length = 1e-12;  // torch.nn.functional.normalize

template <class T>
T product(const T* a, const T* b, int64_t features) {
  T sum = 0;
  for (int64_t i = 0; i < features; ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

/// The two views, by themselves and of all samples.
template <class T>
struct Views {
  explicit Views(const ComparedViews& views)
      : own{numbers_of<T>(views.first), numbers_of<T>(views.second)},
        all{numbers_of<T>(views.first_of_all), numbers_of<T>(views.second_of_all)},
        features(views.features),
        samples(views.first.size() / views.features),
        all_samples(views.first_of_all.size() / views.features),
        first_sample(views.first_sample),
        temperature(static_cast<T>(views.temperature)) {}

  const T* row(int view, int64_t sample) const { return &own[view][sample * features]; }
  const T* other(int view, int64_t sample) const { return &all[view][sample * features]; }

  /// exp(similarity - greatest) to every view of every sample, 0 to itself: those of the other view
  /// first. Gives the greatest.
  T exponentials(int view, int64_t sample, std::vector<T>& to) const {
    to.assign(static_cast<size_t>(2 * all_samples), T{0});
    T greatest = -std::numeric_limits<T>::infinity();
    const auto is_itself = [&](int64_t column) {
      return column == all_samples + first_sample + sample;
    };
    for (int64_t column = 0; column < 2 * all_samples; ++column) {
      const int compared = column < all_samples ? 1 - view : view;
      const T score =
          product(row(view, sample), other(compared, column % all_samples), features) / temperature;
      to[column] = score;
      greatest = is_itself(column) ? greatest : std::max(greatest, score);
    }
    for (int64_t column = 0; column < 2 * all_samples; ++column) {
      to[column] = is_itself(column) ? T{0} : std::exp(to[column] - greatest);
    }
    return greatest;
  }

  std::vector<T> own[2];
  std::vector<T> all[2];
  int64_t features;
  int64_t samples;
  int64_t all_samples;
  int64_t first_sample;
  T temperature;
};

template <class T>
T sum_of(const std::vector<T>& numbers) {
  T sum = 0;
  for (const T number : numbers) {
    sum += number;
  }
  return sum;
}

template <class T>
void add_scaled(T factor, const T* from, T* to, int64_t features) {
  for (int64_t i = 0; i < features; ++i) {
    to[i] += factor * from[i];
  }
}

}  // namespace

void normalised_views(const Values& embeddings, int64_t features, Values& first, Values& second) {
  with_accumulator({&embeddings, &first, &second}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(embeddings);
    std::vector<T> views[2];
    const int64_t rows = embeddings.size() / features;
    for (int64_t row = 0; row < rows; ++row) {
      const T* const values = &x[row * features];
      const T length =
          std::max(std::sqrt(product(values, values, features)), static_cast<T>(least_length));
      for (int64_t i = 0; i < features; ++i) {
        views[row % 2].push_back(values[i] / length);
      }
    }
    store_numbers(views[0], first);
    store_numbers(views[1], second);
  });
}

void views_backward(const Values& embeddings, int64_t features, const ViewGradients& gradients,
                    Values& embedding_gradient) {
  with_accumulator({&embeddings, &gradients.first, &embedding_gradient}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(embeddings);
    const std::vector<T> own[2] = {numbers_of<T>(gradients.first), numbers_of<T>(gradients.second)};
    const std::vector<T> shared[2] = {numbers_of<T>(gradients.first_of_all),
                                      numbers_of<T>(gradients.second_of_all)};
    std::vector<T> result(x.size());
    const int64_t rows = embeddings.size() / features;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t from = row / 2 * features;
      const T* const values = &x[row * features];
      const T length = std::sqrt(product(values, values, features));
      std::vector<T> slope(static_cast<size_t>(features));
      for (int64_t i = 0; i < features; ++i) {
        slope[i] = own[row % 2][from + i] + shared[row % 2][from + i];
      }
      const bool is_short = length < static_cast<T>(least_length);
      const T along =
          is_short ? T{0} : product(values, slope.data(), features) / (length * length * length);
      const T divisor = std::max(length, static_cast<T>(least_length));
      for (int64_t i = 0; i < features; ++i) {
        result[row * features + i] = slope[i] / divisor - values[i] * along;
      }
    }
    store_numbers(result, embedding_gradient);
  });
}

void contrastive_forward(const ComparedViews& compared, Values& loss) {
  with_accumulator({&compared.first, &loss}, [&]<class T>(T) {
    const Views<T> views(compared);
    std::vector<T> exponentials;
    T sum = 0;
    for (int view = 0; view < 2; ++view) {
      for (int64_t sample = 0; sample < views.samples; ++sample) {
        const T greatest = views.exponentials(view, sample, exponentials);
        const T right =
            product(views.row(view, sample), views.other(1 - view, views.first_sample + sample),
                    views.features) /
            views.temperature;
        sum += std::log(sum_of(exponentials)) + greatest - right;
      }
    }
    store_numbers<T>({sum / static_cast<T>(2 * views.samples)}, loss);
  });
}

void contrastive_backward(const ComparedViews& compared, double factor,
                          ComparedGradients gradients) {
  with_accumulator({&compared.first, &gradients.first}, [&]<class T>(T) {
    const Views<T> views(compared);
    std::vector<T> own[2] = {std::vector<T>(views.own[0].size()),
                             std::vector<T>(views.own[1].size())};
    std::vector<T> all[2] = {std::vector<T>(views.all[0].size()),
                             std::vector<T>(views.all[1].size())};
    const T scale =
        static_cast<T>(factor) / (views.temperature * static_cast<T>(2 * views.samples));
    std::vector<T> exponentials;
    for (int view = 0; view < 2; ++view) {
      for (int64_t sample = 0; sample < views.samples; ++sample) {
        views.exponentials(view, sample, exponentials);
        const T total = sum_of(exponentials);
        for (int64_t column = 0; column < 2 * views.all_samples; ++column) {
          const bool is_right = column == views.first_sample + sample;
          const T slope = scale * (exponentials[column] / total - (is_right ? T{1} : T{0}));
          if (slope == 0) {
            continue;  // itself
          }
          const int other = column < views.all_samples ? 1 - view : view;
          const int64_t of = column % views.all_samples;
          add_scaled(slope, views.other(other, of), &own[view][sample * views.features],
                     views.features);
          add_scaled(slope, views.row(view, sample), &all[other][of * views.features],
                     views.features);
        }
      }
    }
    store_numbers(own[0], gradients.first);
    store_numbers(own[1], gradients.second);
    store_numbers(all[0], gradients.first_of_all);
    store_numbers(all[1], gradients.second_of_all);
  });
}

}  // namespace lockstep
