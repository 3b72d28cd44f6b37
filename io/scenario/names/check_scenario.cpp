#include <fmt/format.h>

#include <algorithm>

#include "io/scenario/names/check_names.hpp"
#include "io/scenario/sections/sections.hpp"
#include "io/scenario/statements/statement_table.hpp"

namespace lockstep {
namespace {

void check_bare_statements(Reader& reader, const std::vector<Statement>& statements) {
  for (const Statement& statement : statements) {
    const StatementRow* row = find_statement(name_of(statement.kind));
    if (row != nullptr && !row->bare()) {
      reader.fail_at(statement.place,
                     fmt::format("`{}` needs a trainer, but a program of `cluster.ranks` has none",
                                 row->name()),
                     "replace `cluster.ranks` by `trainer.devices`");
    }
    check_bare_statements(reader, statement.body);
    check_bare_statements(reader, statement.otherwise);
  }
}

void check_bare_program(Reader& reader, const Scenario& scenario) {
  const SourcePlace& ranks = scenario.cluster->ranks->place;
  const std::vector<std::pair<std::string_view, bool>> sections = {
      {"trainer", scenario.trainer.has_value()},
      {"model", scenario.model.has_value()},
      {"data", scenario.data.has_value()},
      {"optimizer", !scenario.optimizers.empty()},
      {"lr_scheduler", !scenario.schedulers.empty()},
      {"metrics", !scenario.metrics.empty()}};
  for (const auto& [section, given] : sections) {
    if (given) {
      reader.fail_at(
          ranks,
          fmt::format("`cluster.ranks` describes a program without a trainer, but `{}` is "
                      "given too",
                      section),
          fmt::format("remove `ranks` or `{}`", section));
    }
  }
  if (!scenario.program || scenario.program->find("main") == nullptr) {
    reader.fail_at(ranks, "a program of `cluster.ranks` needs its `main`",
                   "write program: {main: [..]}");
    return;
  }
  for (const Hook& hook : scenario.program->hooks) {
    if (hook.name != "main") {
      reader.fail_at(hook.place,
                     fmt::format("`{}` is a hook of a trainer, but a program of `cluster.ranks` "
                                 "has no trainer",
                                 hook.name),
                     "it has `main` only");
    }
    check_bare_statements(reader, hook.statements);
  }
  for (const Hook& function : scenario.program->functions) {
    check_bare_statements(reader, function.statements);
  }
}

void check_loader(Reader& reader, const LoaderSpec& loader) {
  const auto exclude = [&](bool both, const SourcePlace& place, std::string_view a,
                           std::string_view b) {
    if (both) {
      reader.fail_at(place, fmt::format("`{}` and `{}` cannot be combined", a, b),
                     "keep one of the two");
    }
  };
  exclude(loader.batches && loader.samples, loader.batches ? loader.batches->place : SourcePlace{},
          "batches", "samples");
  exclude(loader.batches && loader.tokens, loader.batches ? loader.batches->place : SourcePlace{},
          "batches", "tokens");
  exclude(loader.samples && loader.tokens, loader.tokens ? loader.tokens->place : SourcePlace{},
          "tokens", "samples");
}

void check_data(Reader& reader, const DataSpec& data) {
  check_loader(reader, data.common);
  for (const auto* stage : {&data.train, &data.val, &data.test, &data.predict}) {
    for (const LoaderSpec& loader : *stage) {
      check_loader(reader, loader);
    }
  }
}

/// The number of processes is only bounded here; whether it is legal depends on the version.
void check_trainer(Reader& reader, const TrainerSpec& trainer) {
  if (!trainer.devices) {
    return;
  }
  const PlainValue& devices = *trainer.devices;
  const int64_t nodes = std::max<int64_t>(1, value_or<int64_t>(trainer.num_nodes, 1));
  const int64_t* count = devices.get_if<int64_t>();
  if (count != nullptr && *count > maximum_ranks / nodes) {
    reader.fail_at(
        devices.place,
        fmt::format("{} devices on {} nodes are more than {} ranks", *count, nodes, maximum_ranks),
        "");
  }
  const auto* map = devices.get_if<PlainValue::Map>();
  if (map != nullptr && (map->size() != 1 || map->front().key != "find_usable_cuda_devices")) {
    reader.fail_at(devices.place,
                   "`devices` takes an int, a text, a list, or "
                   "`{find_usable_cuda_devices: n}`",
                   "write devices: 8");
  }
}

void check_fault_ranks(Reader& reader, const Scenario& scenario) {
  if (!scenario.is_bare_program()) {
    return;
  }
  const int64_t ranks = scenario.cluster->ranks->value;
  const auto check = [&](int64_t rank, const SourcePlace& place) {
    if (rank >= ranks) {
      reader.fail_at(place, fmt::format("there is no rank {}: the program has {}", rank, ranks),
                     fmt::format("ranks are 0 to {}", ranks - 1));
    }
  };
  for (const FaultSpec& fault : scenario.faults) {
    if (fault.rank) {
      check(fault.rank->value, fault.rank->place);
    }
    if (fault.ranks) {
      for (const int64_t rank : fault.ranks->value.ranks) {
        check(rank, fault.ranks->place);
      }
    }
  }
  for (const Expectation& expectation : scenario.expectations) {
    if (expectation.rank) {
      check(*expectation.rank, expectation.place);
    }
  }
}

}  // namespace

void check_scenario(Reader& reader, const Scenario& scenario,
                    const std::vector<std::string>& cases) {
  if (scenario.is_bare_program()) {
    check_bare_program(reader, scenario);
  }
  if (scenario.data) {
    check_data(reader, *scenario.data);
  }
  if (scenario.trainer) {
    check_trainer(reader, *scenario.trainer);
  }
  check_fault_ranks(reader, scenario);
  check_expectations(reader, scenario, cases);
  check_names(reader, scenario);
  check_rate_factors(reader, scenario);
}

}  // namespace lockstep
