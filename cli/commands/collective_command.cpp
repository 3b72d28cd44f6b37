// `collective`: what a collective of NCCL takes on a cluster, size by size, and how far that is
// from what nccl-tests measured.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "cli/commands/commands.hpp"
#include "cli/render/json.hpp"
#include "io/expression/quantity.hpp"
#include "io/scenario/names/spelling.hpp"
#include "io/table/collective_table.hpp"
#include "rehearsal/collective/collective_prediction.hpp"

namespace lockstep::cli {

namespace {

constexpr int64_t large_from = 65'536;
constexpr int64_t largest_size = int64_t{1} << 50;
constexpr int64_t no_limit = std::numeric_limits<int64_t>::max();

constexpr auto collective_kinds = std::to_array<OpKind>(
    {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter, OpKind::broadcast,
     OpKind::reduce, OpKind::all_to_all, OpKind::gather, OpKind::scatter});

/// Ends the command with an error and its remedy.
struct CollectiveRefused {
  std::string message;
  std::string remedy;
};

OpKind kind_asked(const std::string& text) {
  std::string plain = text;
  std::erase(plain, '_');
  std::vector<std::string_view> names;
  for (const OpKind kind : collective_kinds) {
    std::string name(name_of(kind));
    names.push_back(name_of(kind));
    std::erase(name, '_');
    if (name == plain) {
      return kind;
    }
  }
  const std::string nearest = nearest_spelling(text, names);
  throw CollectiveRefused{fmt::format("there is no collective `{}`", text),
                          nearest.empty()
                              ? fmt::format("expected one of: {}", fmt::join(names, ", "))
                              : fmt::format("did you mean `{}`?", nearest)};
}

int64_t size_asked(std::string_view text) {
  const auto size = parse_bytes(text);
  if (const auto* error = std::get_if<QuantityError>(&size)) {
    throw CollectiveRefused{fmt::format("--sizes: {}", error->message), error->remedy};
  }
  const int64_t bytes = std::get<Bytes>(size).count();
  if (bytes < 1 || bytes > largest_size) {
    throw CollectiveRefused{fmt::format("--sizes: `{}` is not from 1B to 1024TiB", text),
                            "write sizes such as 8B..4GiB"};
  }
  return bytes;
}

std::vector<int64_t> sizes_asked(const std::string& text) {
  std::vector<int64_t> sizes;
  if (const size_t dots = text.find(".."); dots != std::string::npos) {
    const int64_t first = size_asked(std::string_view(text).substr(0, dots));
    const int64_t last = size_asked(std::string_view(text).substr(dots + 2));
    if (first > last) {
      throw CollectiveRefused{fmt::format("--sizes: {} begins above its end", text),
                              "write the smaller size first"};
    }
    for (int64_t bytes = first; bytes <= last; bytes *= 2) {
      sizes.push_back(bytes);
    }
    return sizes;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    sizes.push_back(size_asked(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  return sizes;
}

CollectiveQuestion collective_question(const Request& request) {
  const CollectiveRequest& asked = request.collective;
  CollectiveQuestion question;
  question.kind = kind_asked(request.arguments.front());
  question.cluster = asked.cluster;
  question.nodes = asked.nodes;
  question.set = request.set;
  question.gpus_per_process = asked.gpus_per_process;
  question.is_uncorrected = asked.uncorrected;
  if (request.ranks > 0) {
    question.ranks = request.ranks;
  }
  for (const std::string& variable : asked.environment) {
    const size_t sign = variable.find('=');
    if (sign == std::string::npos || sign == 0) {
      throw CollectiveRefused{fmt::format("--env {}: not a variable with its value", variable),
                              "write --env NCCL_ALGO=Ring"};
    }
    question.environment.push_back({variable.substr(0, sign), variable.substr(sign + 1)});
  }
  return question;
}

// Of the measurements where there are any and no sizes are asked for.
std::vector<CollectiveRow> collective_rows(const Request& request, OpKind kind,
                                           const sim::NcclPricing& pricing,
                                           const CollectiveTable& table) {
  const bool has_table = !request.collective.against.empty();
  std::vector<int64_t> sizes;
  if (!request.collective.sizes.empty() || !has_table) {
    const std::string& text = request.collective.sizes;
    sizes = sizes_asked(text.empty() ? "8B..4GiB" : text);
  } else {
    std::ranges::transform(table.rows, std::back_inserter(sizes), &CollectiveMeasurement::bytes);
  }
  std::vector<CollectiveRow> rows;
  for (const int64_t bytes : sizes) {
    CollectiveRow row = predicted_row(pricing, kind, bytes);
    const auto measured = std::ranges::find(table.rows, bytes, &CollectiveMeasurement::bytes);
    if (measured != table.rows.end()) {
      row.measured_us = measured->time_us;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string microseconds_text(double time_us) {
  if (time_us < 1000) {
    return fmt::format("{:.2f}", time_us);
  }
  return fmt::format("{:.{}f}", time_us, time_us < 100'000 ? 1 : 0);
}

std::string collective_errors(const std::vector<CollectiveRow>& rows) {
  const auto all = median_error(rows, 0, no_limit);
  if (!all) {
    return "no size was both predicted and measured\n";
  }
  std::string text = fmt::format("median error {:.1f} %", *all * 100);
  const auto small = median_error(rows, 0, large_from);
  const auto large = median_error(rows, large_from, no_limit);
  if (small && large) {
    text +=
        fmt::format(": {:.1f} % below 64 KiB, {:.1f} % from there on", *small * 100, *large * 100);
  }
  return text + "\n";
}

std::string reduction_of(OpKind kind) {
  const bool reduces =
      kind == OpKind::all_reduce || kind == OpKind::reduce_scatter || kind == OpKind::reduce;
  return reduces ? "sum" : "none";
}

std::string collective_text(const CollectivePrediction& prediction, OpKind kind,
                            bool has_measurements) {
  std::string text = fmt::format(
      "# {} · NCCL {}.{} · {}\n# {:>13} {:>13} {:>6} {:>6} {:>10} {:>7} {:>7}  {:<14}{}\n"
      "# {:>13} {:>13} {:>6} {:>6} {:>10} {:>7} {:>7}\n",
      prediction.system, prediction.version.major, prediction.version.minor, prediction.path,
      "size", "count", "type", "redop", "time", "algbw", "busbw", "algorithm",
      has_measurements ? "  measured   error" : "", "(B)", "(elements)", "", "", "(us)", "(GB/s)",
      "(GB/s)");
  for (const CollectiveRow& row : prediction.rows) {
    std::string line =
        fmt::format("  {:>13} {:>13} {:>6} {:>6} {:>10} {:>7.2f} {:>7.2f}  {:<14}", row.bytes,
                    row.count, "float", reduction_of(kind), microseconds_text(row.price.time_us()),
                    row.algorithm_GBps, row.bus_GBps, row.price.way);
    if (row.measured_us) {
      const double signed_error = row.price.time_us() / *row.measured_us - 1;
      line +=
          fmt::format("{:>10} {:>+6.1f}%", microseconds_text(*row.measured_us), signed_error * 100);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return has_measurements ? text + collective_errors(prediction.rows) : text;
}

Json json_of_row(const CollectiveRow& row) {
  constexpr double seconds_per_us = 1e-6;
  constexpr double bytes_per_gigabyte = 1e9;
  const auto error = row.error();
  Json json = {{"size_bytes", row.bytes},
               {"count", row.count},
               {"time_s", row.price.time_us() * seconds_per_us},
               {"latency_s", row.price.fixed_us * seconds_per_us},
               {"algorithm_bandwidth_bytes_per_s", row.algorithm_GBps * bytes_per_gigabyte},
               {"bus_bandwidth_bytes_per_s", row.bus_GBps * bytes_per_gigabyte},
               {"algorithm", row.price.way},
               {"channels", row.price.channels}};
  if (row.measured_us) {
    json["measured_s"] = *row.measured_us * seconds_per_us;
    json["error"] = *error;
  }
  return json;
}

Json median_json(const std::optional<double>& error) { return error ? Json(*error) : Json(); }

Json collective_json(const CollectivePrediction& prediction, OpKind kind, bool has_measurements) {
  Json rows = Json::array();
  for (const CollectiveRow& row : prediction.rows) {
    rows.push_back(json_of_row(row));
  }
  Json json = {{"schema_version", schema_version},
               {"command", "collective"},
               {"collective", name_of(kind)},
               {"cluster", prediction.preset},
               {"ranks", prediction.ranks},
               {"nodes", prediction.nodes},
               {"nccl", fmt::format("{}.{}", prediction.version.major, prediction.version.minor)},
               {"path", prediction.path},
               {"extrapolations", prediction.extrapolations},
               {"ignored", prediction.ignored},
               {"rows", rows}};
  if (has_measurements) {
    json["median_error"] = median_json(median_error(prediction.rows, 0, no_limit));
    json["median_error_below_64KiB"] = median_json(median_error(prediction.rows, 0, large_from));
    json["median_error_from_64KiB"] =
        median_json(median_error(prediction.rows, large_from, no_limit));
  }
  return json;
}

std::string collective_notes(const CollectivePrediction& prediction, const Style& style) {
  std::string text;
  for (const std::string& sentence : prediction.extrapolations) {
    text += fmt::format("{}: extrapolation: {}\n", style.note("note"), sentence);
  }
  for (const std::string& name : prediction.ignored) {
    text += fmt::format("{}: {} is not modelled and has no effect\n", style.note("note"), name);
  }
  return text;
}

}  // namespace

Answer collective_command(const Request& request, const Style& style) {
  try {
    const CollectiveQuestion question = collective_question(request);
    AskedCollective asked = understand(question);
    if (!asked.diagnostics.empty()) {
      return {"", render(asked.diagnostics, asked.sources), ExitCode::bad_input};
    }
    CollectiveTable table;
    const bool has_measurements = !request.collective.against.empty();
    if (has_measurements) {
      table = read_collective_table(request.collective.against);
    }
    if (!table.diagnostics.empty()) {
      return {"", render(table.diagnostics, table.lines), ExitCode::bad_input};
    }
    CollectivePrediction& prediction = asked.prediction;
    prediction.rows = collective_rows(request, question.kind, *asked.pricing, table);
    Answer answer;
    answer.text = request.format == Format::json
                      ? text_of(collective_json(prediction, question.kind, has_measurements))
                      : collective_text(prediction, question.kind, has_measurements);
    answer.diagnostics = collective_notes(prediction, style);
    return answer;
  } catch (const CollectiveRefused& refused) {
    return {"", fmt::format("error: {}\n   = {}\n", refused.message, refused.remedy),
            ExitCode::usage};
  }
}

}  // namespace lockstep::cli
