#include "cli/render/sweep/plot_axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::cli {

namespace {

template <size_t count>
PlotUnit largest_below(const std::array<PlotUnit, count>& units, double most) {
  PlotUnit best = units.front();
  for (const PlotUnit& unit : units) {
    best = unit.counts <= most ? unit : best;
  }
  return best;
}

}  // namespace

double plot_number(const Value& value) {
  return value.is(Value::Kind::quantity) ? static_cast<double>(value.quantity().count)
                                         : value.number();
}

PlotUnit plot_unit(const Value& largest) {
  const double most = plot_number(largest);
  if (!largest.is(Value::Kind::quantity)) {
    const std::array<PlotUnit, 4> units = {{{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}}};
    return most < 1e4 ? units.front() : largest_below(units, most);
  }
  switch (largest.quantity().kind) {
    case QuantityKind::time:
      return largest_below(
          std::array<PlotUnit, 4>{{{"us", 1e6}, {"ms", 1e9}, {"s", 1e12}, {"h", 3600e12}}}, most);
    case QuantityKind::bytes:
      return largest_below(std::array<PlotUnit, 5>{{{"B", 1},
                                                    {"KiB", 1024.0},
                                                    {"MiB", 1048576.0},
                                                    {"GiB", 1073741824.0},
                                                    {"TiB", 1099511627776.0}}},
                           most);
    case QuantityKind::rate: return {"GB/s", 1e9};
    case QuantityKind::flops: return {"GFLOP", 1e9};
    case QuantityKind::flops_rate: return {"TFLOP/s", 1e12};
  }
  return {};
}

std::vector<double> plot_ticks(double least, double most) {
  const double span = most > least ? most - least : std::max(1.0, std::abs(most));
  const double rough = span / 5;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0}) {
    step = step < rough ? power * factor : step;
  }
  std::vector<double> ticks;
  const auto first = static_cast<int64_t>(std::floor(least / step));
  const auto last = static_cast<int64_t>(std::ceil((most > least ? most : least + span) / step));
  for (int64_t tick = first; tick <= last; ++tick) {
    ticks.push_back(static_cast<double>(tick) * step);
  }
  return ticks;
}

std::vector<double> plot_log_ticks(double least, double most) {
  constexpr double powers_max = 12;
  const double base = std::log2(most / least) <= powers_max ? 2 : 10;
  // Powers come out a little beside whole exponents.
  constexpr double slack = 1e-9;
  const auto exponent = [&](double value) { return std::log(value) / std::log(base); };
  std::vector<double> ticks;
  const auto last = static_cast<int>(std::ceil(exponent(most) - slack));
  for (auto at = static_cast<int>(std::floor(exponent(least) + slack)); at <= last; ++at) {
    ticks.push_back(std::pow(base, at));
  }
  return ticks;
}

std::string tick_text(double tick) { return fmt::format("{:.6g}", tick == 0 ? 0.0 : tick); }

}  // namespace lockstep::cli
