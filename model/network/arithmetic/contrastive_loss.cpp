#include "model/network/arithmetic/contrastive_loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
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

  std::vector<T> own[2];
  std::vector<T> all[2];
  int64_t features;
  int64_t samples;
  int64_t all_samples;
  int64_t first_sample;
  T temperature;
};

template <class T>
void add_scaled(T factor, const T* from, T* to, int64_t features) {
  for (int64_t i = 0; i < features; ++i) {
    to[i] += factor * from[i];
  }
}

/// What one view is compared with, in columns: the other view of every sample, and where views are
/// compared with all but themselves, behind these the same view of every sample.
template <class T>
class Comparison {
 public:
  explicit Comparison(const ComparedViews& compared) : compared_(&compared), views_(compared) {}

  const Views<T>& views() const { return views_; }
  /// Those that are compared: the first views alone, or both.
  int compared_views() const {
    const ComparisonKind kind = compared_->kind;
    return kind == ComparisonKind::info_nce || kind == ComparisonKind::pairs ? 1 : 2;
  }
  int64_t columns() const {
    const ComparisonKind kind = compared_->kind;
    const bool has_own = kind == ComparisonKind::nt_xent || kind == ComparisonKind::labels;
    return has_own ? 2 * views_.all_samples : views_.all_samples;
  }
  int view_of(int view, int64_t column) const {
    return column < views_.all_samples ? 1 - view : view;
  }
  /// By what the sum of all terms is divided.
  T divisor() const { return static_cast<T>(compared_views() * views_.samples); }
  /// By what it is multiplied.
  T factor() const {
    return compared_->kind == ComparisonKind::labels ? static_cast<T>(compared_->factor) : T{1};
  }

  /// The term of one view. `slopes` gets its derivatives by the scores of all columns.
  T term(int view, int64_t sample, std::vector<T>& slopes) {
    scores(view, sample);
    return compared_->kind == ComparisonKind::pairs ? term_of_pairs(sample, slopes)
                                                    : cross_entropy(sample, slopes);
  }

 private:
  bool is_itself(int64_t sample, int64_t column) const {
    return column == views_.all_samples + views_.first_sample + sample;
  }
  /// Whether the column is a right answer; not asked of the view itself.
  bool is_right(int64_t sample, int64_t column) const {
    const int64_t own = views_.first_sample + sample;
    if (compared_->kind != ComparisonKind::labels) {
      return column == own;
    }
    return compared_->labels->integer(column % views_.all_samples) ==
           compared_->labels->integer(own);
  }

  void scores(int view, int64_t sample) {
    scores_.resize(static_cast<size_t>(columns()));
    for (int64_t column = 0; column < columns(); ++column) {
      scores_[column] = product(views_.row(view, sample),
                                views_.other(view_of(view, column), column % views_.all_samples),
                                views_.features) /
                        views_.temperature;
    }
  }

  // The mean of log-softmax over the right answers, negative.
  T cross_entropy(int64_t sample, std::vector<T>& slopes) {
    T greatest = -std::numeric_limits<T>::infinity();
    T right = 0;
    T answers = 0;
    for (int64_t column = 0; column < columns(); ++column) {
      if (!is_itself(sample, column)) {
        greatest = std::max(greatest, scores_[column]);
        right += is_right(sample, column) ? scores_[column] : T{0};
        answers += is_right(sample, column) ? T{1} : T{0};
      }
    }
    slopes.assign(scores_.size(), T{0});
    T total = 0;
    for (int64_t column = 0; column < columns(); ++column) {
      slopes[column] = is_itself(sample, column) ? T{0} : std::exp(scores_[column] - greatest);
      total += slopes[column];
    }
    for (int64_t column = 0; column < columns(); ++column) {
      const bool counts = !is_itself(sample, column) && is_right(sample, column);
      slopes[column] = slopes[column] / total - (counts ? 1 / answers : T{0});
    }
    return std::log(total) + greatest - right / answers;
  }

  // log(1 + exp(-x)) of every pair, x with a minus where they are of different samples.
  T term_of_pairs(int64_t sample, std::vector<T>& slopes) {
    slopes.assign(scores_.size(), T{0});
    T sum = 0;
    for (int64_t column = 0; column < columns(); ++column) {
      const T sign = is_right(sample, column) ? T{1} : T{-1};
      const T x = sign * (scores_[column] + static_cast<T>(compared_->bias));
      const T small = std::exp(-std::abs(x));
      sum += std::max(-x, T{0}) + std::log1p(small);
      slopes[column] = -sign * (x >= 0 ? small / (1 + small) : 1 / (1 + small));
    }
    return sum;
  }

  const ComparedViews* compared_;
  Views<T> views_;
  std::vector<T> scores_;
};

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
    Comparison<T> comparison(compared);
    std::vector<T> slopes;
    T sum = 0;
    for (int view = 0; view < comparison.compared_views(); ++view) {
      for (int64_t sample = 0; sample < comparison.views().samples; ++sample) {
        sum += comparison.term(view, sample, slopes);
      }
    }
    store_numbers<T>({comparison.factor() * sum / comparison.divisor()}, loss);
  });
}

void contrastive_backward(const ComparedViews& compared, double factor,
                          ComparedGradients gradients) {
  with_accumulator({&compared.first, &gradients.first}, [&]<class T>(T) {
    Comparison<T> comparison(compared);
    const Views<T>& views = comparison.views();
    std::vector<T> own[2] = {std::vector<T>(views.own[0].size()),
                             std::vector<T>(views.own[1].size())};
    std::vector<T> all[2] = {std::vector<T>(views.all[0].size()),
                             std::vector<T>(views.all[1].size())};
    const T scale =
        static_cast<T>(factor) * comparison.factor() / (views.temperature * comparison.divisor());
    std::vector<T> slopes;
    for (int view = 0; view < comparison.compared_views(); ++view) {
      for (int64_t sample = 0; sample < views.samples; ++sample) {
        comparison.term(view, sample, slopes);
        for (int64_t column = 0; column < comparison.columns(); ++column) {
          const T slope = scale * slopes[column];
          if (slope == 0) {
            continue;  // itself
          }
          const int other = comparison.view_of(view, column);
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
