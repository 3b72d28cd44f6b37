#include "cli/commands/sweep_output.hpp"

#include <algorithm>

#include "cli/render/sweep/sweep_plot.hpp"
#include "cli/render/sweep/sweep_table.hpp"
#include "rehearsal/run/output.hpp"

namespace lockstep::cli {

namespace {

std::string rendered(const ShownSweep& shown, const Request& request, const Style& style,
                     ExitCode code) {
  switch (request.format) {
    case Format::csv: return sweep_csv(shown);
    case Format::json: return text_of(sweep_json(shown, static_cast<int>(code)));
    default: return sweep_table(shown, style);
  }
}

// Each key with one of its values.
std::vector<std::pair<std::string, std::string>> example_of(
    const SweepHeader& header, const std::vector<std::vector<std::string>>& values) {
  std::vector<std::pair<std::string, std::string>> example;
  for (size_t key = 0; key < header.keys.size(); ++key) {
    const auto some =
        std::ranges::find_if(values[key], [](const std::string& value) { return !value.empty(); });
    example.emplace_back(header.keys[key], some == values[key].end() ? "" : *some);
  }
  return example;
}

}  // namespace

SweepOutput::SweepOutput(const Request& request, const SweepHeader& header,
                         const std::vector<std::vector<std::string>>& values)
    : request_(request), header_(header), view_(request.sweep, example_of(header, values)) {
  if (request.sweep.plot.empty()) {
    return;
  }
  plot_x_ = request.sweep.plot_x.empty() ? header.keys.front() : request.sweep.plot_x;
  std::vector<std::string> of_x;
  for (size_t key = 0; key < header.keys.size(); ++key) {
    of_x = header.keys[key] == plot_x_ ? values[key] : of_x;
  }
  check_plot_key(plot_x_, header.keys, of_x);
}

void SweepOutput::add(const std::map<int64_t, std::string>& lines, bool is_complete,
                      const Style& style, Answer& answer) const {
  if (!is_complete && !request_.output.empty()) {
    return;
  }
  const ShownSweep shown{header_, view_.select(lines), static_cast<int64_t>(lines.size())};
  answer.text = rendered(shown, request_, style, answer.code);
  if (is_complete && !request_.sweep.plot.empty()) {
    const std::string y = request_.sweep.plot_y.empty() ? "throughput" : request_.sweep.plot_y;
    write_atomically(request_.sweep.plot, sweep_plot(shown, {plot_x_, y}));
  }
}

}  // namespace lockstep::cli
