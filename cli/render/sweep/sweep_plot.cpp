#include "cli/render/sweep/sweep_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "cli/render/sweep/plot_axis.hpp"
#include "cli/render/sweep/sweep_view.hpp"
#include "io/scenario/names/spelling.hpp"
#include "rehearsal/sweep/sweep_cases.hpp"

namespace lockstep::cli {

namespace {

constexpr size_t lines_max = 24;
constexpr double chart_left = 90;
constexpr double chart_top = 40;
constexpr double chart_width = 560;
constexpr double height = 320;
constexpr double legend_row = 20;

// Colours that also differ for readers who see no red or green (Okabe and Ito 2008), on white.
constexpr auto line_colours = std::to_array<std::string_view>(
    {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999999"});
constexpr auto dashes = std::to_array<std::string_view>({"", "7 4", "2 3"});

struct Point {
  double x = 0;
  std::optional<double> y;  ///< none: the case has no such result
};

struct Plotted {
  std::map<std::string, std::vector<Point>> lines;  ///< by what the other keys say
  std::vector<std::string> names;                   ///< in the order of the rows
  Value largest_x;
  Value largest_y;
};

bool is_numeric(const Value& value) {
  return value.is(Value::Kind::integer) || value.is(Value::Kind::floating) ||
         value.is(Value::Kind::quantity);
}

void keep_larger(Value& largest, const Value& value) {
  if (largest.is(Value::Kind::null) || plot_number(value) > plot_number(largest)) {
    largest = value;
  }
}

std::string name_of_line(const SweepRow& row, const std::string& x) {
  std::string name;
  for (const auto& [key, text] : row.values) {
    if (key != x) {
      name += fmt::format("{}{}={}", name.empty() ? "" : ", ", key, text);
    }
  }
  return name;
}

Plotted plotted(const ShownSweep& sweep, const PlotAxes& axes) {
  Plotted all;
  for (const std::string* line : sweep.lines) {
    const SweepRow row = shown_row(*line);
    const Value x = value_in(row, axes.x);
    const Value y = value_in(row, axes.y);
    if (!is_numeric(x)) {  // a list may leave a key out
      continue;
    }
    const std::string name = name_of_line(row, axes.x);
    if (all.lines.count(name) == 0) {
      all.names.push_back(name);
    }
    const bool has_y = is_numeric(y);
    all.lines[name].push_back(
        {plot_number(x), has_y ? std::optional(plot_number(y)) : std::nullopt});
    keep_larger(all.largest_x, x);
    if (has_y) {
      keep_larger(all.largest_y, y);
    }
  }
  for (auto& [name, points] : all.lines) {
    std::ranges::stable_sort(points, {}, &Point::x);
  }
  return all;
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char letter : printable(text)) {
    safe += letter == '<'   ? "&lt;"
            : letter == '>' ? "&gt;"
            : letter == '&' ? "&amp;"
                            : std::string(1, letter);
  }
  return safe;
}

/// One dimension of the picture: from counts to pixels.
struct Scale {
  std::vector<double> ticks;  ///< in units
  PlotUnit unit;
  double begin = 0;  ///< pixels
  double length = 0;
  bool is_logarithmic = false;

  double at(double count) const {
    const double first = spread(ticks.front());
    return begin + length * (spread(count / unit.counts) - first) / (spread(ticks.back()) - first);
  }

 private:
  double spread(double number) const { return is_logarithmic ? std::log2(number) : number; }
};

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(text));
}

std::string segment(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2,
      y2, colour);
}

std::string with_unit(const std::string& name, const PlotUnit& unit) {
  std::string text = unit.name;
  if (name == "throughput") {
    text += text.empty() ? "samples/s" : " samples/s";
  }
  return text.empty() ? name : fmt::format("{} ({})", name, text);
}

std::string drawn_axes(const Scale& x, const Scale& y, const PlotAxes& axes) {
  std::string svg;
  for (const double tick : y.ticks) {
    const double at = y.at(tick * y.unit.counts);
    svg += segment(chart_left, at, chart_left + chart_width, at, "#e0e0e0");
    svg += text_at(chart_left - 8, at + 4, "end", tick_text(tick));
  }
  for (const double tick : x.ticks) {
    const double at = x.at(tick * x.unit.counts);
    svg += segment(at, chart_top + height, at, chart_top + height + 5, "#333333");
    svg += text_at(at, chart_top + height + 20, "middle", tick_text(tick));
  }
  svg += segment(chart_left, chart_top + height, chart_left + chart_width, chart_top + height,
                 "#333333");
  svg += segment(chart_left, chart_top, chart_left, chart_top + height, "#333333");
  svg += text_at(chart_left + chart_width / 2, chart_top + height + 42, "middle",
                 with_unit(axes.x, x.unit));
  svg += text_at(10, chart_top - 12, "start", with_unit(axes.y, y.unit));
  return svg;
}

// Only neighbours are joined: a case without the result between two leaves a gap.
std::string drawn_line(const std::vector<Point>& points, size_t index, const Scale& x,
                       const Scale& y) {
  const std::string_view colour = line_colours[index % line_colours.size()];
  const std::string_view dash = dashes[index / line_colours.size() % dashes.size()];
  std::string path;
  std::string marks;
  bool joined = false;
  for (const Point& point : points) {
    const double at = x.at(point.x);
    if (!point.y) {
      marks +=
          fmt::format("<path d=\"M{:.1f} {:.1f}l8 8m0 -8l-8 8\" stroke=\"{}\" fill=\"none\"/>\n",
                      at - 4, chart_top + height - 12, colour);
      joined = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", joined ? "L" : "M", at, y.at(*point.y));
    marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", at,
                         y.at(*point.y), colour);
    joined = true;
  }
  return fmt::format(
             "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" "
             "stroke-dasharray=\"{}\"/>\n",
             path, colour, dash.empty() ? "none" : dash) +
         marks;
}

std::string drawn_legend(const Plotted& all, bool has_gaps) {
  std::string svg;
  double at = chart_top + height + 68;
  for (size_t index = 0; index < all.names.size(); ++index) {
    if (!all.names[index].empty()) {
      const std::string_view dash = dashes[index / line_colours.size() % dashes.size()];
      svg += fmt::format(
          "<path d=\"M{:.1f} {:.1f}h28\" stroke=\"{}\" stroke-width=\"2\" "
          "stroke-dasharray=\"{}\"/>\n",
          chart_left, at - 4, line_colours[index % line_colours.size()],
          dash.empty() ? "none" : dash);
      svg += text_at(chart_left + 36, at, "start", all.names[index]);
      at += legend_row;
    }
  }
  return svg + (has_gaps ? text_at(chart_left, at, "start", "x at the foot: no such result") : "");
}

// Keys that grow by factors are easier to read on an axis of powers.
Scale scale_of_key(const Value& largest, double least) {
  constexpr double wide = 20;
  const PlotUnit unit = plot_unit(largest);
  const double most = plot_number(largest) / unit.counts;
  if (least <= 0 || most < wide * least / unit.counts) {
    return {plot_ticks(least / unit.counts, most), unit, chart_left, chart_width};
  }
  return {plot_log_ticks(least / unit.counts, most), unit, chart_left, chart_width, true};
}

Scale scale_of(const Value& largest, double least, double begin, double length) {
  const PlotUnit unit = plot_unit(largest);
  return {plot_ticks(least / unit.counts, plot_number(largest) / unit.counts), unit, begin, length};
}

}  // namespace

void check_plot_key(const std::string& x, const std::vector<std::string>& keys,
                    const std::vector<std::string>& values_of_x) {
  if (std::ranges::count(keys, x) == 0) {
    throw SweepError(fmt::format("--x: `{}` is not varied", x),
                     spelling_remedy(x, {keys.begin(), keys.end()}));
  }
  for (const std::string& text : values_of_x) {
    if (!text.empty() && !is_numeric(value_of_text(text))) {
      throw SweepError(fmt::format("--plot draws over numbers, and `{}` of {} is none", text, x),
                       "name a key of numbers by --x");
    }
  }
}

std::string sweep_plot(const ShownSweep& sweep, const PlotAxes& axes) {
  const Plotted all = plotted(sweep, axes);
  if (all.largest_y.is(Value::Kind::null)) {
    throw SweepError(fmt::format("--plot: no case that is shown has a {}", axes.y),
                     "name a different result by --y, or widen --where");
  }
  if (all.names.size() > lines_max) {
    throw SweepError(fmt::format("--plot: {} lines are too many to read, {} are the most",
                                 all.names.size(), lines_max),
                     "narrow it by --where, or vary fewer keys");
  }
  double least_x = plot_number(all.largest_x);
  double least_y = 0;
  bool has_gaps = false;
  for (const auto& [name, points] : all.lines) {
    least_x = std::min(least_x, points.front().x);
    for (const Point& point : points) {
      least_y = std::min(least_y, point.y.value_or(0));
      has_gaps = has_gaps || !point.y;
    }
  }
  const Scale x = scale_of_key(all.largest_x, least_x);
  const Scale y = scale_of(all.largest_y, least_y, chart_top + height, -height);
  const double whole_height =
      chart_top + height + 76 + legend_row * static_cast<double>(all.names.size() + 1);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"{0:.0f}\" "
      "viewBox=\"0 0 720 {0:.0f}\" font-family=\"sans-serif\" font-size=\"13\" "
      "fill=\"#222222\">\n<rect width=\"720\" height=\"{0:.0f}\" fill=\"#ffffff\"/>\n",
      whole_height);
  svg += text_at(chart_left + chart_width, 14, "end", sweep.header.scenario);
  svg += drawn_axes(x, y, axes);
  for (size_t index = 0; index < all.names.size(); ++index) {
    svg += drawn_line(all.lines.at(all.names[index]), index, x, y);
  }
  return svg + drawn_legend(all, has_gaps) + "</svg>\n";
}

}  // namespace lockstep::cli
