// One step of rank 0 on its streams, and its memory.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/render/over_time/memory_over_time.hpp"
#include "cli/render/report/drawings.hpp"
#include "cli/render/timeline/rank_spans.hpp"
#include "cli/render/timeline/span_text.hpp"
#include "model/strategy/local_model/replica_sites.hpp"
#include "rehearsal/measure/steady_step.hpp"
#include "rehearsal/measure/step_samples.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

// Pixels.
constexpr double width_of_drawing = 1120;
constexpr double left_of_plot = 150;
constexpr double width_of_plot = width_of_drawing - left_of_plot - 10;
constexpr double height_of_track = 22;
constexpr double height_of_memory = 110;
constexpr int64_t spans_max = 1'000'000;

/// Where times are in a drawing.
struct TimeAxis {
  DrawnSpan span;

  double x(Time at) const {
    const Time inside = std::clamp(at, span.begin, span.end);
    return left_of_plot +
           width_of_plot * seconds(inside - span.begin) / seconds(span.end - span.begin);
  }
};

std::string_view colour_of(const Span& span) {
  const Row& row = span.row;
  const auto is_at = [&row](std::string_view site) { return row.site == site_id(site); };
  if (span.kind == Span::Kind::wait) {
    return "wait";
  }
  if (row.kind == OpKind::host) {
    return row.site == data_loading_site ? "data" : "host";
  }
  if (moves_between_gpus(row)) {
    return "communication";
  }
  if (row.stream.queue() == queue::data || is_at(replica_sites::bring_batch)) {
    return "data";
  }
  if (row.kind == OpKind::copy) {
    return "copies";
  }
  if (is_optimizer(row)) {
    return "optimizer";
  }
  if (is_at(replica_sites::layer_forward) || is_at(replica_sites::loss_forward)) {
    return "forward";
  }
  return is_at(replica_sites::layer_backward) || is_at(replica_sites::loss_backward) ||
                 is_at(replica_sites::recompute)
             ? "backward"
             : "other";
}

/// Operations that are drawn as one, because they are too short to be told apart.
struct Drawn {
  double from = 0;
  double until = 0;
  std::string_view colour;
  int64_t count = 0;
  std::string name;
  Time time{};
};

void add_span(std::vector<Drawn>& row, const TimeAxis& axis, const Span& span,
              const std::string& name) {
  constexpr double gap = 0.4;
  constexpr double narrow = 2;
  const double from = axis.x(span.start);
  const double until = axis.x(span.finish);
  const std::string_view colour = colour_of(span);
  if (!row.empty() && row.back().colour == colour && from - row.back().until < gap &&
      until - from < narrow) {
    row.back().until = std::max(row.back().until, until);
    ++row.back().count;
    row.back().time += span.finish - span.start;
    return;
  }
  row.push_back({from, until, colour, 1, name, span.finish - span.start});
}

bool is_drawn(const Span& span, const DrawnSpan& within) {
  const bool is_kind = span.kind == Span::Kind::operation || span.kind == Span::Kind::wait;
  return is_kind && span.finish != never && span.start < within.end && span.finish > within.begin &&
         span.finish > span.start;
}

std::string ticks_of(const TimeAxis& axis, double height) {
  constexpr int64_t ticks = 8;
  const Time length = axis.span.end - axis.span.begin;
  const Time each = round_period(std::max(Time(1), length / ticks));
  std::string parts;
  for (Time at{}; at <= length; at += each) {
    const double x = axis.x(axis.span.begin + at);
    parts += svg_line(x, 6, x, height - 16) +
             svg_label(x, height - 3, at == Time{} ? "start" : "middle", time_text(at.count()));
  }
  return parts;
}

const std::vector<LegendEntry>& legend_of_step() {
  static const std::vector<LegendEntry> entries = {
      {"forward", "forward"},
      {"backward", "backward"},
      {"optimizer", "optimizer"},
      {"communication", "communication"},
      {"data", "data"},
      {"copies", "copies"},
      {"host", "host"},
      {"other", "other kernels"},
      {"wait", "the thread waits"},
  };
  return entries;
}

// The threads of the host first, then the streams by their numbers.
int32_t order_of(int32_t track) {
  return track >= host_tracks ? track - host_tracks : track + host_tracks;
}

}  // namespace

DrawnSpan drawn_span(const OneRun& run) {
  const Journal& journal = *run.result.journal;
  const std::vector<StepMark> steps = steps_of(journal, 0);
  const std::vector<int64_t> samples = samples_of_steps(*run.preparation.log, steps.size());
  const StepSequence sequence(journal.repeated_on(0, 0), steps);
  const std::optional<SteadyStep> steady = steady_step(sequence, samples);
  const SteadyStep drawn = steady ? drawn_step(*steady, sequence, samples) : SteadyStep{};
  if (drawn.begin >= drawn.end) {
    return {Time{}, run.result.total_time, false};
  }
  return {drawn.begin, drawn.end, true};
}

Drawing step_drawing(const Rehearsal& rehearsal) {
  const TimeAxis axis{drawn_span(rehearsal.run)};
  if (axis.span.begin >= axis.span.end) {
    return {};
  }
  const SpanText text(rehearsal);
  RankSpans found = spans_of_rank(rehearsal.run.result, 0, spans_max);
  std::ranges::stable_sort(found.spans, {}, &Span::start);
  std::map<int32_t, std::vector<Drawn>> rows;
  std::map<int32_t, int32_t> track_of;
  for (const Span& span : found.spans) {
    if (is_drawn(span, axis.span)) {
      const int32_t order = order_of(span.track);
      track_of[order] = span.track;
      add_span(rows[order], axis, span, text.name(span));
    }
  }
  if (rows.empty()) {
    return {};
  }
  const double bottom = 10 + height_of_track * static_cast<double>(rows.size());
  Drawing drawing{width_of_drawing, bottom + 44,
                  axis.span.is_step ? "A steady step of rank 0" : "The run of rank 0", ""};
  drawing.parts = ticks_of(axis, bottom + 20);
  double y = 10;
  for (const auto& [order, row] : rows) {
    drawing.parts += svg_label(left_of_plot - 8, y + 14, "end",
                               track_name(track_of[order], *rehearsal.run.result.journal));
    for (const Drawn& box : row) {
      drawing.parts +=
          svg_box(box.from, y + 2, box.until - box.from, height_of_track - 5, box.colour,
                  box.count == 1
                      ? fmt::format("{}: {}", box.name, time_text(box.time.count()))
                      : fmt::format("{} operations: {}", box.count, time_text(box.time.count())));
    }
    y += height_of_track;
  }
  drawing.parts += svg_legend(left_of_plot, bottom + 38, legend_of_step());
  return drawing;
}

Drawing memory_drawing(const Rehearsal& rehearsal) {
  const RunResult& run = rehearsal.run.result;
  const TimeAxis axis{drawn_span(rehearsal.run)};
  if (axis.span.begin >= axis.span.end) {
    return {};
  }
  const MemoryOverTime memory(*run.journal, 0, left_out_stretches(*run.journal, 0));
  const std::vector<MemoryOverTime::Mark>& marks = memory.marks();
  std::map<int64_t, Bytes> by_pixel;  // the most in each
  Bytes held{};
  Bytes most{};
  for (const MemoryOverTime::Mark& mark : marks) {
    if (mark.at > axis.span.end) {
      break;
    }
    if (mark.at >= axis.span.begin) {
      Bytes& of_pixel = by_pixel[static_cast<int64_t>(axis.x(mark.at))];
      of_pixel = std::max({of_pixel, held, mark.held});
      most = std::max(most, of_pixel);
    }
    held = mark.held;
  }
  if (most == Bytes{}) {
    return {};
  }
  const auto y = [most](Bytes bytes) {
    constexpr double top = 14;
    return top + (height_of_memory - top) *
                     (1 - static_cast<double>(bytes.count()) / static_cast<double>(most.count()));
  };
  Drawing drawing{width_of_drawing, height_of_memory + 24,
                  "Memory of rank 0 over the same time, as its thread allocates", ""};
  drawing.parts = ticks_of(axis, height_of_memory + 20);
  Bytes now = memory.at(axis.span.begin);
  std::string path = fmt::format("M{:.1f} {:.1f} V{:.1f}", left_of_plot, height_of_memory, y(now));
  for (const auto& [pixel, bytes] : by_pixel) {
    path += fmt::format(" H{} V{:.1f}", pixel, y(bytes));
  }
  path += fmt::format(" H{:.1f} V{:.1f} Z", left_of_plot + width_of_plot, height_of_memory);
  drawing.parts += fmt::format("<path class=\"memory\" d=\"{}\"/>\n", path) +
                   svg_label(left_of_plot - 8, 18, "end", bytes_text(most.count())) +
                   svg_label(left_of_plot - 8, height_of_memory, "end", "0");
  return drawing;
}

}  // namespace lockstep::cli
