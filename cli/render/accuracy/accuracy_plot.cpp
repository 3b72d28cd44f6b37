#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "cli/render/accuracy/accuracy_view.hpp"

namespace lockstep::cli {

namespace {

// Pixels of the picture.
constexpr double accuracy_left = 80;
constexpr double accuracy_top = 40;
constexpr double accuracy_side = 520;

constexpr auto family_colours = std::to_array<std::string_view>(
    {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"});

/// A logarithmic axis from one power of ten to another.
struct PowerAxis {
  double first = 0;  ///< exponents
  double last = 1;

  double part(double value) const { return (std::log10(value) - first) / (last - first); }
  double x(double value) const { return accuracy_left + accuracy_side * part(value); }
  double y(double value) const { return accuracy_top + accuracy_side * (1 - part(value)); }
};

double per_gpu(const PredictedRow& row, double throughput) {
  return throughput / static_cast<double>(row.group.gpus);
}

PowerAxis axis_of(const std::vector<PredictedRow>& rows) {
  double least = 1;
  double most = 10;
  for (const PredictedRow& row : rows) {
    if (row.predicted) {
      for (const double value : {per_gpu(row, row.measured), per_gpu(row, *row.predicted)}) {
        least = std::min(least, value);
        most = std::max(most, value);
      }
    }
  }
  return {std::floor(std::log10(least)), std::ceil(std::log10(most))};
}

std::string line_of_ratio(const PowerAxis& axis, double ratio, const char* colour) {
  const double least = std::pow(10, axis.first);
  const double most = std::pow(10, axis.last);
  const double from = ratio < 1 ? least / ratio : least;
  const double to = ratio > 1 ? most / ratio : most;
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n",
      axis.x(from), axis.y(from * ratio), axis.x(to), axis.y(to * ratio), colour);
}

std::string accuracy_axes(const PowerAxis& axis) {
  std::string svg;
  for (double exponent = axis.first; exponent <= axis.last; ++exponent) {
    const double value = std::pow(10, exponent);
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"#e0e0e0\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:g}</text>\n"
        "<line x1=\"{5:.1f}\" y1=\"{6:.1f}\" x2=\"{7:.1f}\" y2=\"{6:.1f}\" stroke=\"#e0e0e0\"/>\n"
        "<text x=\"{8:.1f}\" y=\"{9:.1f}\" text-anchor=\"end\">{4:g}</text>\n",
        axis.x(value), accuracy_top, accuracy_top + accuracy_side,
        accuracy_top + accuracy_side + 20, value, accuracy_left, axis.y(value),
        accuracy_left + accuracy_side, accuracy_left - 8, axis.y(value) + 4);
  }
  return svg + fmt::format(
                   "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">measured samples per "
                   "second and GPU</text>\n<text x=\"10\" y=\"24\">predicted; grey lines: 1.25 "
                   "times too fast or slow</text>\n",
                   accuracy_left + accuracy_side / 2, accuracy_top + accuracy_side + 42);
}

}  // namespace

std::string accuracy_plot(const AccuracyView& view) {
  const PowerAxis axis = axis_of(view.rows);
  std::map<std::string, size_t> colour_of;
  std::string points;
  for (const PredictedRow& row : view.rows) {
    if (row.predicted) {
      const size_t number = colour_of.emplace(row.group.family, colour_of.size()).first->second;
      points += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" fill-opacity=\"0.6\"><title>{}"
          "</title></circle>\n",
          axis.x(per_gpu(row, row.measured)), axis.y(per_gpu(row, *row.predicted)),
          family_colours[number % family_colours.size()], row.id);
    }
  }
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"640\" viewBox=\"0 0 720 "
      "640\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#222222\">\n"
      "<rect width=\"720\" height=\"640\" fill=\"#ffffff\"/>\n";
  svg += accuracy_axes(axis) + line_of_ratio(axis, 1, "#333333") +
         line_of_ratio(axis, 1.25, "#999999") + line_of_ratio(axis, 0.8, "#999999") + points;
  double at = accuracy_top + 16;
  for (const auto& [family, number] : colour_of) {
    svg += fmt::format(
        "<circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"4\" fill=\"{2}\"/>\n"
        "<text x=\"{3:.1f}\" y=\"{4:.1f}\">{5}</text>\n",
        accuracy_left + accuracy_side + 16, at - 4, family_colours[number % family_colours.size()],
        accuracy_left + accuracy_side + 26, at, family);
    at += 20;
  }
  return svg + "</svg>\n";
}

}  // namespace lockstep::cli
