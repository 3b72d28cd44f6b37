// The backend of the process group, and how long its calls may take.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "model/expression/evaluation_error.hpp"
#include "model/expression/unit.hpp"
#include "model/trainer/framework/strategy_versions.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

std::optional<ProcessGroupBackend> backend_named(const std::string& name) {
  if (name == "nccl") {
    return ProcessGroupBackend::nccl;
  }
  if (name == "gloo") {
    return ProcessGroupBackend::gloo;
  }
  return name == "mpi" ? std::optional(ProcessGroupBackend::mpi) : std::nullopt;
}

/// What somebody else than `process_group` says.
struct Wish {
  std::string backend;
  SourcePlace place{};
};

// The strategy's argument, and up to 1.9 a variable of the environment (strategies/ddp.py, init of
// process_group_backend).
std::optional<Wish> wish_of(const Preparation& preparation, const Scenario& scenario) {
  if (scenario.trainer->strategy) {
    const PlainValue* argument = scenario.trainer->strategy->find("process_group_backend");
    const std::string* text = argument == nullptr ? nullptr : argument->get_if<std::string>();
    if (text != nullptr) {
      return Wish{*text, argument->place};
    }
  }
  for (const EnvironmentVariable& variable : scenario.env) {
    if (variable.name == "PL_TORCH_DISTRIBUTED_BACKEND" &&
        preparation.placement.lightning < Version{2, 0, 0}) {
      try {
        return Wish{value_on(variable, Place{}), variable.place};
      } catch (const EvaluationError&) {
        return std::nullopt;  // reported with the other variables
      }
    }
  }
  return std::nullopt;
}

void take(Preparation& preparation, Scenario& scenario, const Wish& wish) {
  const std::optional<ProcessGroupBackend> backend = backend_named(wish.backend);
  if (!backend) {
    add_problem(preparation, Kind::invalid, wish.place,
                fmt::format("there is no backend `{}`", wish.backend), "use nccl or gloo");
    return;
  }
  if (!scenario.process_group) {
    scenario.process_group.emplace();
    scenario.process_group->place = wish.place;
  }
  Given<ProcessGroupBackend>& given = scenario.process_group->backend;
  if (given && given->value != *backend) {
    add_problem(preparation, Kind::invalid, wish.place,
                "the backend is different from process_group.backend", "give it only once");
    return;
  }
  given = Placed<ProcessGroupBackend>{*backend, wish.place};
}

std::optional<double> number_at(std::string_view& text) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc()) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return number;
}

// "5 min", as the scenario writes times.
std::optional<double> seconds_of_text(std::string_view text) {
  const std::optional<double> number = number_at(text);
  const Unit* unit = number ? find_unit(text) : nullptr;
  if (unit == nullptr || unit->kind != QuantityKind::time) {
    return std::nullopt;
  }
  return *number * static_cast<double>(unit->factor) / static_cast<double>(picoseconds_per_second);
}

// {timedelta: {minutes: 5}}, as the script writes it.
std::optional<double> seconds_of_timedelta(const PlainValue& value) {
  static constexpr std::pair<std::string_view, double> names[] = {
      {"weeks", 604'800}, {"days", 86'400},       {"hours", 3600},       {"minutes", 60},
      {"seconds", 1},     {"milliseconds", 1e-3}, {"microseconds", 1e-6}};
  const std::optional<Object> object = as_object(value);
  if (!object || (object->name != "timedelta" && object->name != "datetime.timedelta") ||
      object->arguments.empty()) {
    return std::nullopt;
  }
  double seconds = 0;
  for (const ObjectArgument& argument : object->arguments) {
    const auto* const unit =
        std::ranges::find(names, argument.name, &std::pair<std::string_view, double>::first);
    const std::optional<double> number = argument.value.number();
    if (unit == std::end(names) || !number) {
      return std::nullopt;
    }
    seconds += *number * unit->second;
  }
  return seconds;
}

const PlainValue* limit_given_to(const Scenario& scenario) {
  return scenario.trainer && scenario.trainer->strategy
             ? scenario.trainer->strategy->find("timeout")
             : nullptr;
}

// The argument `timeout` of a strategy's class.
void take_time_limit(Preparation& preparation, Scenario& scenario, const PlainValue& limit) {
  constexpr double most = 1e6;  // seconds, which a Time holds
  const std::string* text = limit.get_if<std::string>();
  const std::optional<double> seconds =
      text != nullptr ? seconds_of_text(*text) : seconds_of_timedelta(limit);
  if (!seconds || !(*seconds > 0) || *seconds > most) {
    add_problem(preparation, Kind::invalid, limit.place,
                fmt::format("`timeout` is not a time: {}", text_of(limit)),
                "write `timeout: 30 min`, or {timedelta: {minutes: 30}}");
    return;
  }
  if (!scenario.process_group) {
    scenario.process_group.emplace();
    scenario.process_group->place = limit.place;
  }
  const Time time(std::llround(*seconds * static_cast<double>(picoseconds_per_second)));
  Given<Time>& given = scenario.process_group->timeout;
  if (given && given->value != time) {
    add_problem(preparation, Kind::invalid, limit.place,
                "the time limit is different from process_group.timeout", "give it only once");
    return;
  }
  given = Placed<Time>{time, limit.place};
}

}  // namespace

Time time_limit_of_group(const Preparation& preparation) {
  const Scenario& scenario = *preparation.scenario;
  if (preparation.placement.device == DeviceType::tpu) {
    return Time::max();  // XLA has no watchdog
  }
  if (scenario.process_group && scenario.process_group->timeout) {
    return scenario.process_group->timeout->value;
  }
  const PlainValue* limit = limit_given_to(scenario);
  TimeLimitSituation situation{.torch = version_asked(scenario, "torch"),
                               .gloo = preparation.gloo,
                               .is_none = limit != nullptr && limit->is_null()};
  if (!scenario.is_bare_program()) {
    situation.class_name = preparation.placement.strategy_class;
    situation.lightning = preparation.placement.lightning;
  }
  return default_time_limit(situation);
}

// new_group with `timeout=None` asks _get_default_timeout (torch/distributed/distributed_c10d.py).
Time time_limit_of_new_groups(const Preparation& preparation) {
  if (preparation.placement.device == DeviceType::tpu) {
    return Time::max();
  }
  TimeLimitSituation situation{.torch = version_asked(*preparation.scenario, "torch"),
                               .gloo = preparation.gloo,
                               .is_none = true};
  if (!preparation.scenario->is_bare_program()) {
    situation.class_name = preparation.placement.strategy_class;
    situation.lightning = preparation.placement.lightning;
  }
  return default_time_limit(situation);
}

namespace {

// XLA's collectives are its own: no strategy of TPUs makes a process group of torch. One process on
// Apple's GPU has none either.
void refuse_process_group(Preparation& preparation, const Scenario& scenario) {
  const bool is_tpu = preparation.placement.device == DeviceType::tpu;
  if (!is_tpu && preparation.placement.device != DeviceType::mps) {
    return;
  }
  const char* reason = is_tpu ? "XLAStrategy makes no process group of torch: XLA exchanges values"
                              : "one process on MPS makes no process group";
  const auto is_given = [](const auto& value) { return value && value->place.line > 0; };
  if (scenario.process_group && is_given(scenario.process_group->backend)) {
    add_problem(preparation, Kind::invalid, scenario.process_group->backend->place, reason,
                "leave process_group out");
  }
  const bool names_library = scenario.cluster && is_given(scenario.cluster->collectives) &&
                             (scenario.cluster->collectives->value == CollectiveModel::nccl ||
                              scenario.cluster->collectives->value == CollectiveModel::gloo);
  if (names_library) {
    add_problem(preparation, Kind::invalid, scenario.cluster->collectives->place, reason,
                "leave cluster.collectives out, or write ring or tree");
  }
}

}  // namespace

void prepare_process_group(Preparation& preparation, Scenario& scenario) {
  refuse_process_group(preparation, scenario);
  if (const PlainValue* limit = limit_given_to(scenario); limit != nullptr && !limit->is_null()) {
    take_time_limit(preparation, scenario, *limit);
  }
  if (const std::optional<Wish> wish = wish_of(preparation, scenario)) {
    take(preparation, scenario, *wish);
  }
  if (!scenario.process_group || !scenario.process_group->backend) {
    return;
  }
  const Placed<ProcessGroupBackend>& backend = *scenario.process_group->backend;
  const bool cpu = preparation.placement.cpu;
  if (backend.value == ProcessGroupBackend::horovod) {
    add_problem(preparation, Kind::invalid, backend.place,
                "Horovod is no backend of a process group that a Trainer could use",
                "write trainer: {strategy: horovod} with versions: {lightning: \"1.6\"}, or a "
                "program of `cluster: {ranks: ..}` without a trainer");
  }
  if (backend.value == ProcessGroupBackend::nccl && cpu) {
    add_problem(preparation, Kind::refused, backend.place,
                "ProcessGroupNCCL is only supported with GPUs, no GPUs found", "use gloo",
                refused_code);
  }
  if (backend.value == ProcessGroupBackend::gloo && !cpu) {
    add_problem(preparation, Kind::note, backend.place,
                "gloo moves tensors of GPUs through host memory, which is slow", "use nccl");
  }
}

}  // namespace lockstep
