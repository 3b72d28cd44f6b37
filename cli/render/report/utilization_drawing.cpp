#include <fmt/format.h>

#include "cli/render/report/drawings.hpp"
#include "properties/finding.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

constexpr double whole_width = 1120;
constexpr double left = 150;
constexpr double plot_width = whole_width - left - 10;
constexpr double plot_height = 120;
constexpr double top = 8;

// In the order of Moment.
constexpr std::string_view colours[moment_count] = {"forward", "checkpoint", "data",        "alone",
                                                    "host",    "copies",     "other_ranks", "idle"};

std::string title_of(const UtilizationSample& sample) {
  std::string text =
      fmt::format("until {}: a kernel ran {}, working {}", time_text(sample.until.count()),
                  percent_text(sample.kernel_ran), percent_text(sample.working));
  for (size_t kind = 1; kind < moment_count; ++kind) {
    if (sample.share[kind] >= 0.005) {
      text += fmt::format(", {} {}", phrase_of(static_cast<Moment>(kind)),
                          percent_text(sample.share[kind]));
    }
  }
  return text + (sample.evaluating > 0.5 ? ", in a validation" : "");
}

std::string column_of(const UtilizationSample& sample, double from, double until) {
  std::string parts;
  double bottom = top + plot_height;
  for (size_t kind = 0; kind < moment_count; ++kind) {
    const double height = plot_height * sample.share[kind];
    if (height > 0.2) {
      bottom -= height;
      parts += svg_box(from, bottom, until - from, height, colours[kind]);
    }
  }
  if (sample.evaluating > 0.5) {
    parts += svg_box(from, top + plot_height + 2, until - from, 4, "evaluation");
  }
  return fmt::format("<g><title>{}</title>\n{}</g>\n", markup_text(title_of(sample)), parts);
}

}  // namespace

Drawing utilization_drawing(const Utilization& utilization, Time total) {
  const auto x = [total](Time at) { return left + plot_width * seconds(at) / seconds(total); };
  Drawing drawing{whole_width, top + plot_height + 58, "The GPU of rank 0 over the whole run", ""};
  Time begin{};
  for (const UtilizationSample& sample : utilization.samples) {
    drawing.parts += column_of(sample, x(begin), x(sample.until));
    begin = sample.until;
  }
  for (const int percent : {0, 50, 100}) {
    const double y = top + plot_height * (1 - percent / 100.0);
    drawing.parts += svg_label(left - 8, y + 4, "end", fmt::format("{} %", percent));
  }
  drawing.parts +=
      svg_label(left, top + plot_height + 22, "start", "0") +
      svg_label(left + plot_width, top + plot_height + 22, "end", time_text(total.count()));
  std::vector<LegendEntry> entries;
  for (size_t kind = 0; kind < moment_count; ++kind) {
    entries.push_back({colours[kind], phrase_of(static_cast<Moment>(kind))});
  }
  entries.push_back({"evaluation", "validation (below)"});
  drawing.parts += svg_legend(left, top + plot_height + 46, entries);
  return drawing;
}

}  // namespace lockstep::cli
