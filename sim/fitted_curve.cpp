#include "sim/fitted_curve.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/core/ensure.hpp"

namespace lockstep::sim {

namespace {

constexpr size_t terms = 3;
using Vector = std::array<double, terms>;

/// Of a point, what each coefficient counts, over the measured time: 1 is to come out.
Vector relative_terms(const KernelPoint& point) {
  const double time = seconds(point.time.median);
  return {1 / time, static_cast<double>(point.flops.count()) / time,
          static_cast<double>(point.traffic.count()) / time};
}

/// The largest of each term, so that the equations are of one size.
Vector scales_of(const std::vector<Vector>& rows) {
  Vector scales{};
  for (const Vector& row : rows) {
    for (size_t term = 0; term < terms; ++term) {
      scales[term] = std::max(scales[term], row[term]);
    }
  }
  return scales;
}

/// Solves the normal equations of the terms in `chosen` (Gauss with pivots); nothing where they do
/// not determine one another.
std::optional<Vector> solve(const std::vector<Vector>& rows, unsigned chosen) {
  std::array<std::array<double, terms + 1>, terms> equations{};
  for (size_t i = 0; i < terms; ++i) {
    const bool used_row = (chosen >> i & 1) != 0;
    equations[i][i] = used_row ? 0 : 1;
    for (const Vector& row : rows) {
      for (size_t j = 0; used_row && j < terms; ++j) {
        equations[i][j] += (chosen >> j & 1) != 0 ? row[i] * row[j] : 0;
      }
      equations[i][terms] += used_row ? row[i] : 0;
    }
  }
  for (size_t column = 0; column < terms; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < terms; ++row) {
      pivot = std::fabs(equations[row][column]) > std::fabs(equations[pivot][column]) ? row : pivot;
    }
    std::swap(equations[column], equations[pivot]);
    constexpr double singular = 1e-12;  // beside terms of size 1
    if (std::fabs(equations[column][column]) < singular) {
      return std::nullopt;
    }
    for (size_t row = 0; row < terms; ++row) {
      const double factor = row == column ? 0 : equations[row][column] / equations[column][column];
      for (size_t j = column; j <= terms; ++j) {
        equations[row][j] -= factor * equations[column][j];
      }
    }
  }
  Vector solution{};
  for (size_t term = 0; term < terms; ++term) {
    solution[term] = equations[term][terms] / equations[term][term];
  }
  return solution;
}

double squared_error(const std::vector<Vector>& rows, const Vector& solution) {
  double sum = 0;
  for (const Vector& row : rows) {
    double value = 0;
    for (size_t term = 0; term < terms; ++term) {
      value += row[term] * solution[term];
    }
    sum += (value - 1) * (value - 1);
  }
  return sum;
}

}  // namespace

double KernelFit::seconds(Flops flops, Bytes traffic) const {
  return overhead + static_cast<double>(flops.count()) * per_flop +
         static_cast<double>(traffic.count()) * per_byte;
}

std::optional<KernelFit> fit(const std::vector<KernelPoint>& points) {
  std::vector<Vector> rows;
  for (const KernelPoint& point : points) {
    if (point.time.median > Time{}) {
      rows.push_back(relative_terms(point));
    }
  }
  if (rows.size() < fewest_points) {
    return std::nullopt;
  }
  const Vector scales = scales_of(rows);
  for (Vector& row : rows) {
    for (size_t term = 0; term < terms; ++term) {
      row[term] = scales[term] > 0 ? row[term] / scales[term] : 0;
    }
  }
  Vector best{};
  double least = squared_error(rows, best);
  for (unsigned chosen = 1; chosen < 1u << terms; ++chosen) {
    const std::optional<Vector> solution = solve(rows, chosen);
    const bool legal = solution && std::all_of(solution->begin(), solution->end(),
                                               [](double value) { return value >= 0; });
    if (legal && squared_error(rows, *solution) < least) {
      best = *solution;
      least = squared_error(rows, best);
    }
  }
  const auto unscaled = [&](size_t term) {
    return scales[term] > 0 ? best[term] / scales[term] : 0;
  };
  return KernelFit{unscaled(0), unscaled(1), unscaled(2)};
}

double interpolate(const std::vector<TransferPoint>& points, Bytes bytes) {
  ensure(!points.empty(), "a curve has points");
  if (points.size() == 1 || bytes <= points.front().bytes) {
    return seconds(points.front().time.median);
  }
  auto right =
      std::upper_bound(points.begin(), points.end(), bytes,
                       [](Bytes value, const TransferPoint& point) { return value < point.bytes; });
  right = right == points.end() ? right - 1 : right;
  const auto left = right - 1;
  const double slope = (seconds(right->time.median) - seconds(left->time.median)) /
                       static_cast<double>((right->bytes - left->bytes).count());
  if (bytes > right->bytes) {  // where a measured fall is noise: more bytes never take less time
    return seconds(right->time.median) +
           std::max(0.0, slope) * static_cast<double>((bytes - right->bytes).count());
  }
  return seconds(left->time.median) + slope * static_cast<double>((bytes - left->bytes).count());
}

RangeFactors range_of(const std::vector<HeldOut>& held_out, HeldOut::Part part) {
  std::vector<double> ratios;
  for (const HeldOut& one : held_out) {
    if (one.part == part && one.predicted > Time{}) {
      ratios.push_back(lockstep::seconds(one.measured) / lockstep::seconds(one.predicted));
    }
  }
  if (ratios.empty()) {
    return {};
  }
  std::sort(ratios.begin(), ratios.end());
  const auto quantile = [&ratios](double fraction) {
    const auto rank = static_cast<size_t>(std::ceil(fraction * static_cast<double>(ratios.size())));
    return ratios[std::max<size_t>(rank, 1) - 1];
  };
  return {std::min(1.0, quantile(0.05)), std::max(1.0, quantile(0.95))};
}

}  // namespace lockstep::sim
