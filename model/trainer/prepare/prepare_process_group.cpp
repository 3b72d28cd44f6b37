// The backend of the process group.
#include <fmt/core.h>

#include "model/expression/evaluation_error.hpp"
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

}  // namespace

void prepare_process_group(Preparation& preparation, Scenario& scenario) {
  if (const std::optional<Wish> wish = wish_of(preparation, scenario)) {
    take(preparation, scenario, *wish);
  }
  if (!scenario.process_group || !scenario.process_group->backend) {
    return;
  }
  const Placed<ProcessGroupBackend>& backend = *scenario.process_group->backend;
  const bool cpu = preparation.placement.cpu;
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
