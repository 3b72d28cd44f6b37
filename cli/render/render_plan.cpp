#include "cli/render/render_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "explain/json_text.hpp"
#include "properties/finding.hpp"
#include "rehearsal/measure/cost.hpp"
#include "rehearsal/plan/layouts.hpp"
#include "rehearsal/sweep/csv_cells.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

using Cells = std::vector<std::string>;

double number_of(const SweepRow& row, std::string_view name) {
  const Value value = value_in(row, name);
  return value.is_number() ? value.number() : -1;
}

int64_t quantity_of(const SweepRow& row, std::string_view name) {
  const Value value = value_in(row, name);
  return value.is(Value::Kind::quantity) ? value.quantity().count : -1;
}

std::string share_text(double share) { return share < 0 ? "-" : percent_text(share); }

std::string micro_text(const Layout& layout, int64_t own) {
  return fmt::format("{} x {}", layout.micro_batch, own / layout.micro_batch);
}

/// Samples of a step on one replica.
int64_t own_samples(const Layout& layout) { return layout.batch_size * layout.accumulated; }

std::string cost_cell(const SweepRow& row) {
  const Value amount = value_in(row, "cost.per_million_samples");
  const Value currency = value_in(row, "cost.currency");
  return amount.is_number() && currency.is(Value::Kind::text)
             ? money_text(amount.number(), currency.text())
             : "";
}

Cells cells_of(size_t number, const TriedLayout& tried) {
  const SweepRow& row = tried.row;
  const double mfu = number_of(row, "mfu");
  const int64_t step = quantity_of(row, "step_time");
  const int64_t memory = quantity_of(row, "memory.peak");
  return {fmt::format("{}", number),
          tried.layout.description,
          micro_text(tried.layout, own_samples(tried.layout)),
          std::string(name_of(tried.layout.recompute)),
          step < 0 ? "-" : time_text(step),
          number_text(number_of(row, "throughput")),
          mfu < 0 ? "-" : fmt::format("{:.2f}", mfu),
          memory < 0 ? "-" : bytes_text(memory),
          share_text(number_of(row, "bubble")),
          share_text(number_of(row, exposed_share)),
          cost_cell(row)};
}

const Cells& titles() {
  static const Cells titles = {"",          "layout",       "micro-batches", "checkpointing",
                               "step time", "samples/s",    "MFU",           "memory per GPU",
                               "bubble",    "exposed comm", "cost, million"};
  return titles;
}

std::string table_of(const std::vector<Cells>& lines) {
  std::vector<size_t> widths(titles().size(), 0);
  for (const Cells& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], line[i].size());
    }
  }
  std::string text;
  for (const Cells& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      const bool is_text = i == 1 || i == 3;
      text += is_text ? fmt::format("  {:<{}}", line[i], widths[i])
                      : fmt::format("  {:>{}}", line[i], widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

std::string counts_of(const PlanResult& result) {
  std::string text =
      fmt::format("{}: {} simulated", plural(result.layouts, "layout"),
                  result.layouts - result.too_large - result.too_much_kept - result.passed_over -
                      result.too_slow - result.left - result.failed);
  if (result.out_of_memory > 0) {
    text += fmt::format(" ({} out of memory)", result.out_of_memory);
  }
  if (result.too_large > 0) {
    text += fmt::format(", {} whose parameters, gradients and optimizer state do not fit",
                        result.too_large);
  }
  if (result.too_much_kept > 0) {
    text += fmt::format(", {} whose activations do not fit either", result.too_much_kept);
  }
  if (result.too_slow > 0) {
    text += fmt::format(", {} that cannot be among the fastest, by the least time of their kernels",
                        result.too_slow);
  }
  if (result.passed_over > 0) {
    text += fmt::format(", {} left out, as two larger micro-batches fit", result.passed_over);
  }
  if (result.failed > 0) {
    text += fmt::format(", {} refused or not modelled", result.failed);
  }
  if (result.left > 0) {
    text += fmt::format("; {} not tried, as the time was up (--time-limit)", result.left);
  }
  return text + "\n";
}

}  // namespace

std::string render_plan(const ShownPlan& plan, const Style& style) {
  const PlanResult& result = plan.result;
  std::string text = fmt::format("{} on {}, {} per step\n", plan.of.model, plan.of.machine,
                                 plural(plan.of.task.samples, "sample"));
  text += counts_of(result) + "\n";
  if (result.best.empty()) {
    text += "No layout that was tried fits.\n";
  } else {
    std::vector<Cells> lines{titles()};
    for (size_t index = 0; index < plan.commands.size(); ++index) {
      lines.push_back(cells_of(index + 1, result.best[index]));
    }
    if (std::ranges::none_of(lines.begin() + 1, lines.end(),
                             [](const Cells& line) { return !line.back().empty(); })) {
      lines.front().back().clear();  // no price is known
    }
    text += style.strong("The fastest, by simulation of three steps") + "\n" + table_of(lines);
    text += "\n";
    for (size_t index = 0; index < plan.commands.size(); ++index) {
      text += fmt::format("  {:>2}  {}\n", index + 1, plan.commands[index]);
    }
  }
  for (const TriedLayout& refused : result.refused) {
    text +=
        fmt::format("\nrefused, such as {}: {}", refused.layout.description, refused.row.message);
  }
  return text + fmt::format("\nNot tried: {}.\n", fmt::join(not_tried(), ", "));
}

namespace {

Json json_of(const TriedLayout& tried, const std::string& command) {
  const SweepRow& row = tried.row;
  Json json;
  json["layout"] = tried.layout.description;
  json["strategy"] = tried.layout.strategy;
  json["replicas"] = tried.layout.replicas;
  json["micro_batch_size"] = tried.layout.micro_batch;
  json["micro_batches"] = own_samples(tried.layout) / tried.layout.micro_batch;
  json["activation_checkpointing"] = name_of(tried.layout.recompute);
  const int64_t step = quantity_of(row, "step_time");
  const int64_t memory = quantity_of(row, "memory.peak");
  json["step_time_s"] = step < 0 ? Json() : Json(seconds(Time(step)));
  json["samples_per_s"] = number_of(row, "throughput");
  for (const auto& [key, name] : {std::pair("mfu", std::string_view("mfu")),
                                  {"bubble", std::string_view("bubble")},
                                  {"exposed_communication_share", exposed_share}}) {
    const double number = number_of(row, name);
    json[key] = number < 0 ? Json() : Json(number);
  }
  json["memory_bytes"] = memory < 0 ? Json() : Json(memory);
  const double cost = number_of(row, "cost.per_million_samples");
  const Value currency = value_in(row, "cost.currency");
  json["cost_per_million_samples"] = cost < 0 ? Json() : Json(cost);
  json["cost_currency"] = currency.is(Value::Kind::text) ? Json(currency.text()) : Json();
  json["command"] = command;
  return json;
}

}  // namespace

std::string plan_json(const ShownPlan& plan, int exit_code) {
  const PlanResult& result = plan.result;
  Json json;
  json["schema_version"] = schema_version;
  json["command"] = "plan";
  json["exit_code"] = exit_code;
  json["model"] = plan.of.model;
  json["machine"] = plan.of.machine;
  json["samples_per_step"] = plan.of.task.samples;
  json["layouts"] = result.layouts;
  json["too_large_by_model_states"] = result.too_large;
  json["too_large_by_activations"] = result.too_much_kept;
  json["out_of_memory"] = result.out_of_memory;
  json["too_slow_by_least_time"] = result.too_slow;
  json["passed_over"] = result.passed_over;
  json["refused"] = result.failed;
  json["not_tried"] = result.left;
  json["best"] = Json::array();
  for (size_t index = 0; index < plan.commands.size(); ++index) {
    json["best"].push_back(json_of(result.best[index], plan.commands[index]));
  }
  json["kinds_not_tried"] = not_tried();
  return text_of(json);
}

std::string plan_csv(const ShownPlan& plan) {
  std::string text =
      "layout,strategy,replicas,micro_batch_size,micro_batches,activation_checkpointing,"
      "step_time_s,samples_per_s,mfu,bubble,exposed_communication_share,memory_bytes,"
      "cost_per_million_samples,cost_currency,command\n";
  for (size_t index = 0; index < plan.commands.size(); ++index) {
    std::string line;
    const Json cells = json_of(plan.result.best[index], plan.commands[index]);
    for (const auto& [key, value] : cells.items()) {
      const std::string cell = value.is_string() ? value.get<std::string>()
                               : value.is_null() ? ""
                                                 : value.dump();
      line += (line.empty() ? "" : ",") + csv_cell(cell);
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace lockstep::cli
