// Collectives by name: `process_group: {backend: horovod}` of a bare program.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "model/scenario/expressions_of.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

bool is_in_horovod(StatementKind kind) {
  return kind == StatementKind::all_reduce || kind == StatementKind::all_gather ||
         kind == StatementKind::broadcast || kind == StatementKind::barrier ||
         kind == StatementKind::join;
}

bool is_of_horovod_alone(const Statement& statement) {
  return statement.kind == StatementKind::join || statement.communication.name.has_value();
}

// hvd.alltoall and hvd.reducescatter exist; what torch.distributed alone has raises AttributeError.
void check_over_horovod(Preparation& preparation, const Statement& statement) {
  const std::string name(name_of(statement.kind));
  const auto lack = [&](const SourcePlace& place, const std::string& message,
                        const std::string& remedy) {
    add_problem(preparation, Problem::Kind::unsupported, place, message, remedy);
  };
  if (statement.kind == StatementKind::reduce_scatter ||
      statement.kind == StatementKind::all_to_all) {
    lack(statement.place, fmt::format("{} over Horovod is not modelled", name),
         "use all_reduce, all_gather or broadcast");
  } else if (statement.kind <= StatementKind::new_group && !is_in_horovod(statement.kind)) {
    add_problem(preparation, Problem::Kind::invalid, statement.place,
                fmt::format("Horovod has no {}", name),
                "use all_reduce, all_gather or broadcast, or the backend nccl or gloo");
  } else if (statement.group && statement.group->value != "world") {
    lack(statement.group->place, "process sets are not modelled in programs without a trainer",
         "leave `group` out");
  } else if (is_in_horovod(statement.kind) && statement.stream) {
    add_problem(preparation, Problem::Kind::invalid, statement.stream->place,
                "Horovod's background thread chooses the stream", "leave `stream` out");
  } else if (statement.kind == StatementKind::barrier && value_or(statement.asynchronous, false)) {
    add_problem(preparation, Problem::Kind::invalid, statement.asynchronous->place,
                "hvd.barrier has no handle to wait for", "leave `async` out");
  }
}

/// Digits, with a fraction or without.
std::optional<double> plain_number(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole_text = error == std::errc() && end == text.data() + text.size();
  return is_whole_text && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

}  // namespace

bool is_of_named_calls(std::string_view variable) {
  return variable == "HOROVOD_CYCLE_TIME" || variable == "HOROVOD_FUSION_THRESHOLD" ||
         variable == "HOROVOD_CACHE_CAPACITY";
}

void read_named_calls(Preparation& preparation, NamedCallSettings& settings) {
  constexpr double most_milliseconds = 1e6;
  constexpr double most = 1e12;
  constexpr double picoseconds = 1e9;  // of a millisecond
  for (const EnvironmentVariable& variable : preparation.scenario->env) {
    if (!is_of_named_calls(variable.name)) {
      continue;
    }
    const bool is_time = variable.name == "HOROVOD_CYCLE_TIME";
    const std::optional<double> number = plain_number(variable.value);
    if (!number || *number < 0 || *number > (is_time ? most_milliseconds : most)) {
      add_problem(preparation, Problem::Kind::invalid, variable.place,
                  fmt::format("{} is not a number that {} can take", variable.value, variable.name),
                  "write digits");
    } else if (is_time) {
      settings.cycle_time = Time(static_cast<int64_t>(*number * picoseconds));
    } else if (variable.name == "HOROVOD_CACHE_CAPACITY") {
      settings.cache_capacity = static_cast<int64_t>(*number);
    } else {
      settings.fusion_threshold = Bytes(static_cast<int64_t>(*number));
    }
  }
}

void check_names_of_calls(Preparation& preparation) {
  const Scenario& scenario = *preparation.scenario;
  if (!scenario.program) {
    return;
  }
  const bool by_name = meets_by_name(scenario);
  for_each_statement(*scenario.program, [&](const Statement& statement) {
    if (by_name) {
      check_over_horovod(preparation, statement);
    } else if (is_of_horovod_alone(statement)) {
      add_problem(
          preparation, Problem::Kind::invalid, statement.place,
          statement.kind == StatementKind::join
              ? "`join` is Horovod's"
              : "only Horovod pairs calls by `name`: NCCL and Gloo pair them by their order",
          scenario.is_bare_program()
              ? "write process_group: {backend: horovod}, or leave it out"
              : "leave it out; the strategy `horovod` names gradients by itself");
    }
  });
}

bool meets_by_name(const Scenario& scenario) {
  return scenario.process_group && scenario.process_group->backend &&
         scenario.process_group->backend->value == ProcessGroupBackend::horovod;
}

}  // namespace lockstep
