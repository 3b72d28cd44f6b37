// Names what a scenario says and nothing here gives meaning to.
#include <fmt/core.h>

#include <algorithm>

#include "model/cluster/presets.hpp"
#include "model/expression/function.hpp"
#include "model/metric/functional.hpp"
#include "model/metric/torchmetrics_names.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/scenario/hooks.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/user_program/gradient_tape.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

void find_functions(Preparation& preparation, const ProgramSpec& program) {
  for_each_statement(program, [&](const Statement& statement) {
    for_each_expression(statement, [&](const Expression& expression) {
      for (const std::string& name : expression.functions()) {
        if (find_function(name) == nullptr && !is_metric_function(name) &&
            name != parameter_function) {
          const std::optional<TorchMetricsName> known = find_torchmetrics_function(name);
          add_problem(preparation, Kind::unsupported, expression.place(),
                      known ? text_of_unsupported(*known)
                            : fmt::format("the function `{}` is not supported yet", name),
                      known ? remedy_of_unsupported(*known)
                            : "docs/scenario-format.md, section 6, lists the functions");
        }
      }
    });
  });
}

void check_reductions(Preparation& preparation, const ProgramSpec& program) {
  for_each_statement(program, [&](const Statement& statement) {
    const std::string reduction = value_or(statement.log.reduce_fx, std::string("mean"));
    if (reduction != "mean" && reduction != "avg" && reduction != "sum" && reduction != "min" &&
        reduction != "max") {
      add_problem(
          preparation, Kind::refused, statement.log.reduce_fx->place,
          fmt::format("`self.log` reduces by min, max, mean and sum only, not by `{}`", reduction),
          "gather the values (all_gather) and log what you make of them", refused_code);
    }
  });
}

// Lightning's own state belongs to the thread that trains.
void find_statements_in_threads(Preparation& preparation, const ProgramSpec& program) {
  const auto is_of_trainer = [](const Statement& statement) {
    return statement.kind >= StatementKind::fit;
  };
  for_each_statement(program, [&](const Statement& statement) {
    if (statement.kind != StatementKind::thread) {
      return;
    }
    const Hook thread{"threads", statement.body, statement.place};
    for (size_t kind = 0; kind <= static_cast<size_t>(StatementKind::should_stop); ++kind) {
      const Statement* found =
          find_reached_statement(program, thread, static_cast<StatementKind>(kind));
      if (found != nullptr && is_of_trainer(*found)) {
        add_problem(preparation, Kind::unsupported, found->place,
                    fmt::format("`{}` in a host thread is not modelled", name_of(found->kind)),
                    "call it from the main thread; a thread may hold communication, kernel, host, "
                    "copy, let and the like");
      }
    }
  });
}

void find_hooks(Preparation& preparation, const ProgramSpec& program) {
  for (const Hook& hook : program.hooks) {
    if (!is_called_hook(hook.name)) {
      add_problem(preparation, Kind::unsupported, hook.place,
                  fmt::format("the hook `{}` is not called yet", hook.name));
    }
  }
}

/// AMD's accelerators: "MI250", "mi300x".
bool is_of_amd(std::string_view name) {
  const std::string compact = compact_preset_name(name);
  const size_t at = compact.starts_with("amd") ? 3 : 0;
  return compact.size() > at + 2 && compact.substr(at, 2) == "mi" &&
         compact.find_first_of("0123456789", at) == at + 2;
}

// The loader accepts only names of presets, and names that are known not to be presets.
void find_preset(Preparation& preparation, const Given<std::string>& preset, const char* what,
                 PresetAnswer (*find)(std::string_view), const char* own) {
  if (!preset) {
    return;
  }
  const PresetAnswer answer = find(preset->value);
  if (answer.verdict != PresetAnswer::Verdict::modelled) {
    const std::string nearest =
        answer.name.empty() ? "" : fmt::format("use `{}`, the nearest one, or ", answer.name);
    add_problem(preparation, Kind::unsupported, preset->place,
                fmt::format("{} `{}` exists and is not modelled yet{}", what, preset->value,
                            is_of_amd(preset->value)
                                ? ": kernels and collectives are priced as CUDA and NCCL run them, "
                                  "not as ROCm and RCCL do"
                                : ""),
                fmt::format("{}{}", nearest, own));
  }
}

void find_cluster(Preparation& preparation, const ClusterSpec& cluster,
                  const WorldAbilities& world) {
  find_preset(preparation, cluster.preset, "the machine", find_cluster_name,
              "describe your own: cluster: {gpu: a100, gpus: 4, nics: 1, network: {bandwidth: 100 "
              "Gb/s}}");
  if (cluster.gpu) {
    find_preset(
        preparation, cluster.gpu->preset, "the GPU", find_device_name,
        "describe your own: gpu: {memory: 24 GiB, memory_bandwidth: 600 GB/s, flops: {fp32: "
        "30 TFLOP/s}}");
  }
  if (!world.topology_files) {
    for (const Given<std::string>* file : {&cluster.nccl_xml, &cluster.nvidia_smi}) {
      if (*file) {
        add_problem(preparation, Kind::unsupported, (*file)->place,
                    "topology files are not read yet");
      }
    }
  }
  if (cluster.calibration && !world.calibration) {
    add_problem(preparation, Kind::unsupported, cluster.calibration->place,
                "calibration is not read yet");
  }
}

// What a fit that continues does within an epoch changed with 2.5 (loops/training_epoch_loop.py).
void find_resuming(Preparation& preparation, const ProgramSpec& program) {
  for_each_statement(program, [&](const Statement& statement) {
    if (statement.checkpoint && preparation.lightning < Version{2, 5, 0}) {
      add_problem(preparation, Kind::unsupported, statement.checkpoint->place,
                  "`ckpt_path` is modelled from Lightning 2.5 on",
                  "write versions: {lightning: \"2.6\"}, or leave it out");
    }
  });
}

}  // namespace

void find_unsupported(Preparation& preparation, const WorldAbilities& world) {
  const Scenario& scenario = *preparation.scenario;
  if (scenario.program) {
    find_functions(preparation, *scenario.program);
    find_hooks(preparation, *scenario.program);
    find_statements_in_threads(preparation, *scenario.program);
    check_reductions(preparation, *scenario.program);
    find_resuming(preparation, *scenario.program);
  }
  for (const FaultSpec& fault : scenario.faults) {
    if (world.faults.count(fault.kind) == 0) {
      add_problem(preparation, Kind::unsupported, fault.place,
                  fmt::format("the fault `{}` is not injected yet", name_of(fault.kind)));
    }
  }
  if (scenario.cluster) {
    find_cluster(preparation, *scenario.cluster, world);
  }
}

}  // namespace lockstep
