#include <catch2/catch.hpp>
#include <tuple>

#include "cli/render/sweep/plot_axis.hpp"
#include "cli/render/sweep/sweep_plot.hpp"
#include "rehearsal/sweep/sweep_cases.hpp"

using namespace lockstep;
using namespace lockstep::cli;

namespace sweep_plot_test {

namespace {

struct PlottedRows {
  std::vector<std::string> lines;
  ShownSweep shown;
};

// Step times in milliseconds of (devices, precision); 0: it does not fit.
PlottedRows rows_of(const std::vector<std::tuple<int, std::string, int>>& cases) {
  PlottedRows rows;
  for (const auto& [devices, precision, step_ms] : cases) {
    SweepRow row;
    row.number = static_cast<int64_t>(rows.lines.size()) + 1;
    row.values = {{"devices", std::to_string(devices)}, {"precision", precision}};
    row.verdict = step_ms == 0 ? "out_of_memory" : "ok";
    if (step_ms > 0) {
      row.figures = {{"step_time", Value(Time(int64_t{step_ms} * 1'000'000'000))}};
    }
    rows.lines.push_back(line_of(row));
  }
  rows.shown.header.scenario = "a<b>.yaml";
  rows.shown.header.keys = {"devices", "precision"};
  for (const std::string& line : rows.lines) {
    rows.shown.lines.push_back(&line);
  }
  return rows;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("ticks are round and span the values") {
  CHECK(plot_ticks(0, 10) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(plot_ticks(0, 410) == std::vector<double>{0, 100, 200, 300, 400, 500});
  CHECK(plot_ticks(3, 3).front() <= 3);
  CHECK(plot_ticks(3, 3).back() > 3);
  for (const double most : {1e-9, 0.3, 7.0, 99.0, 123456.0}) {
    const std::vector<double> ticks = plot_ticks(0, most);
    CHECK(ticks.front() <= 0);
    CHECK(ticks.back() >= most);
    CHECK(ticks.size() >= 4);
    CHECK(ticks.size() <= 12);
  }
}

TEST_CASE("a key that grows by factors has an axis of powers") {
  CHECK(plot_log_ticks(1, 64) == std::vector<double>{1, 2, 4, 8, 16, 32, 64});
  CHECK(plot_log_ticks(3, 100) == std::vector<double>{2, 4, 8, 16, 32, 64, 128});
  CHECK(plot_log_ticks(2, 90'000) == std::vector<double>{1, 10, 100, 1000, 10'000, 100'000});
  const PlottedRows rows = rows_of({{1, "bf16", 50}, {8, "bf16", 50}, {64, "bf16", 50}});
  const std::string svg = sweep_plot(rows.shown, {"devices", "step_time"});
  // 8 is in the middle between 1 and 64.
  CHECK(svg.find("d=\"M90.0 40.0L370.0 40.0L650.0 40.0\"") != std::string::npos);
}

TEST_CASE("an axis has the largest unit that the values reach") {
  CHECK(plot_unit(Value(Time(41'000'000'000))).name == "ms");
  CHECK(plot_unit(Value(Bytes(int64_t{80} << 30))).name == "GiB");
  CHECK(plot_unit(Value(64)).name.empty());
  CHECK(plot_unit(Value(31'400.0)).name == "k");
}

TEST_CASE("a plot has a line for each combination of the other keys") {
  const PlottedRows rows =
      rows_of({{4, "bf16", 20}, {2, "bf16", 10}, {2, "fp32", 30}, {4, "fp32", 0}, {8, "fp32", 50}});
  const std::string svg = sweep_plot(rows.shown, {"devices", "step_time"});
  CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count_of(svg, "<circle") == 4);
  CHECK(svg.find(">precision=bf16</text>") != std::string::npos);
  CHECK(svg.find(">precision=fp32</text>") != std::string::npos);
  CHECK(svg.find(">step_time (ms)</text>") != std::string::npos);
  CHECK(svg.find(">devices</text>") != std::string::npos);
  CHECK(svg.find("a&lt;b&gt;.yaml") != std::string::npos);
  // 10 and 20 ms at 2 and 4 of 2..8 devices, on axes of 0..50 ms: 90 + 560 / 3, 360 - 320 / 5.
  CHECK(svg.find("d=\"M90.0 296.0L276.7 232.0\"") != std::string::npos);
  // The case that does not fit leaves a gap and a cross.
  CHECK(svg.find("d=\"M90.0 168.0M650.0 40.0\"") != std::string::npos);
  CHECK(count_of(svg, "m0 -8l-8 8") == 1);
}

TEST_CASE("what cannot be plotted is refused") {
  const auto said = [](const auto& act) -> std::string {
    try {
      act();
    } catch (const SweepError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(said([] { check_plot_key("devises", {"devices"}, {}); }).find("did you mean `devices`") !=
        std::string::npos);
  CHECK(said([] {
          check_plot_key("a", {"a"}, {"1", "ddp"});
        }).find("`ddp` of a is none") != std::string::npos);
  check_plot_key("a", {"a"}, {"1", "40 GB", ""});
  const PlottedRows none = rows_of({{2, "fp32", 0}});
  CHECK(said([&] {
          sweep_plot(none.shown, {"devices", "step_time"});
        }).find("no case that is shown has a step_time") != std::string::npos);
  std::vector<std::tuple<int, std::string, int>> many;
  for (int index = 0; index < 25; ++index) {
    many.emplace_back(2, "p" + std::to_string(index), 5);
  }
  const PlottedRows crowd = rows_of(many);
  CHECK(said([&] {
          sweep_plot(crowd.shown, {"devices", "step_time"});
        }).find("25 lines are too many") != std::string::npos);
}

}  // namespace sweep_plot_test
