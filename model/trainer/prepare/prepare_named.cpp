// Collectives by name: `process_group: {backend: horovod}` of a bare program.
#include <fmt/format.h>

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

}  // namespace

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
