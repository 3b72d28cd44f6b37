// The variables of `env`, compared with the processes that there are.
#include <fmt/format.h>

#include <algorithm>

#include "model/expression/evaluation_error.hpp"
#include "model/trainer/framework/device_request.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

void refuse(Preparation& preparation, const EnvironmentVariable& variable,
            const std::string& message, const std::string& remedy) {
  add_problem(preparation, Kind::refused, variable.place, message, remedy, refused_code);
}

const EnvironmentVariable* find(const Preparation& preparation, std::string_view name) {
  const std::vector<EnvironmentVariable>& env = preparation.scenario->env;
  const auto found = std::ranges::find(env, name, &EnvironmentVariable::name);
  return found == env.end() ? nullptr : &*found;
}

// They decide what Horovod says, and when it ends, where a run hangs.
bool is_of_stall_check(std::string_view name) {
  return name == "HOROVOD_STALL_CHECK_DISABLE" || name == "HOROVOD_STALL_CHECK_TIME_SECONDS" ||
         name == "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS";
}

// Lightning 2.0 no longer reads the variable of the backend.
bool is_read(const Preparation& preparation, const std::string& name) {
  if (std::ranges::count(preparation.placement.strategy_variables, name) > 0) {
    return true;
  }
  if (is_of_named_calls(name) && meets_by_name(*preparation.scenario)) {
    return true;
  }
  if (is_of_stall_check(name)) {
    return preparation.placement.traits.gathers_rows || meets_by_name(*preparation.scenario);
  }
  return has_meaning(name) && (name != "PL_TORCH_DISTRIBUTED_BACKEND" ||
                               preparation.placement.lightning < Version{2, 0, 0});
}

void tell_unread(Preparation& preparation) {
  for (const EnvironmentVariable& variable : preparation.scenario->env) {
    if (!is_read(preparation, variable.name)) {
      add_problem(preparation, Kind::note, variable.place,
                  fmt::format("the environment variable {} has no effect here", variable.name));
    }
  }
}

void check_stall_times(Preparation& preparation) {
  for (const EnvironmentVariable& variable : preparation.scenario->env) {
    constexpr size_t most_digits = 9;  // a C int
    const std::string& value = variable.value;
    const bool is_number = !value.empty() && value.size() <= most_digits &&
                           value.find_first_not_of("0123456789") == std::string::npos;
    if (is_of_stall_check(variable.name) && !is_number) {
      add_problem(preparation, Kind::invalid, variable.place,
                  fmt::format("{} is not a number that {} can take", value, variable.name),
                  "write digits");
    }
  }
}

std::string remedy_of(const EnvironmentVariable& variable) {
  if (expected_value(variable.name, Launch{}, 0)) {
    return "leave the variable to the launcher, or write it with `{rank}`, `{local_rank}`, "
           "`{node_rank}` and `{world_size}`";
  }
  return variable.name == "MASTER_ADDR" ? "give all ranks the name of the machine that rank 0 is on"
                                        : "give all ranks the same";
}

// lightning_fabric/plugins/environments/lightning.py: with LOCAL_RANK the processes are there
// already, and where no MASTER_PORT is set each of them looks for a free port.
void check_port(Preparation& preparation) {
  const EnvironmentVariable* const local_rank = find(preparation, "LOCAL_RANK");
  const Launch& launch = preparation.placement.launch;
  if (local_rank != nullptr && find(preparation, "MASTER_PORT") == nullptr &&
      launch.launcher == "lightning" && launch.world_size() > 1) {
    refuse(preparation, *local_rank,
           "with LOCAL_RANK and no MASTER_PORT each process would choose its own port",
           "set MASTER_PORT to the same on all ranks, or leave LOCAL_RANK to Lightning");
  }
}

/// The GPUs that CUDA shows to each process, where one variable restricts them.
class VisibleDevices {
 public:
  VisibleDevices(Preparation& preparation, const EnvironmentVariable& variable,
                 std::vector<std::string> value_by_rank)
      : preparation_(preparation), variable_(variable), values_(std::move(value_by_rank)) {}

  // Rank by rank, to the first that has no GPU of its own.
  void check() {
    const Launch& launch = preparation_.placement.launch;
    std::vector<int64_t> used;
    for (int32_t rank = 0; rank < launch.world_size(); ++rank) {
      const Place place = launch.place_of(rank);
      if (place.local_rank == 0) {
        used.clear();
      }
      const std::optional<int64_t> gpu = gpu_of(place);
      if (!gpu) {
        return;
      }
      const auto earlier = std::ranges::find(used, *gpu);
      if (earlier != used.end() && uses_nccl()) {
        return refuse(
            preparation_, variable_,
            fmt::format("ranks {} and {} both train on GPU {}, as {} is {} on the one and "
                        "{} on the other: NCCL finds a duplicate GPU",
                        rank - (used.end() - earlier), rank, *gpu, variable_.name,
                        value_of(rank - static_cast<int32_t>(used.end() - earlier)),
                        value_of(rank)),
            one_value);
      }
      used.push_back(*gpu);
      if (place.node == 0) {
        preparation_.placement.devices[static_cast<size_t>(place.local_rank)] = *gpu;
      }
    }
  }

 private:
  static constexpr const char* one_value =
      "give all processes of a node one value with all of its GPUs: Lightning takes its own by "
      "LOCAL_RANK";

  const std::string& value_of(int32_t rank) const { return values_[static_cast<size_t>(rank)]; }

  bool uses_nccl() const {
    const auto& group = preparation_.scenario->process_group;
    return !group || !group->backend || group->backend->value == ProcessGroupBackend::nccl;
  }

  // All that the trainer asks for must be visible, but to torchrun's processes that see one GPU
  // (_parse_gpu_ids); the rank's own must be there for them too.
  std::optional<int64_t> gpu_of(const Place& place) {
    const Placement& placement = preparation_.placement;
    const auto rank = static_cast<int32_t>(place.rank.value);
    const std::vector<int64_t> visible = visible_devices(value_of(rank), placement.present);
    const int64_t own = placement.numbers[static_cast<size_t>(place.local_rank)];
    const bool unchecked = placement.launch.launcher == "torchrun" && visible.size() == 1;
    const int64_t wanted = unchecked ? own : std::ranges::max(placement.numbers);
    if (wanted < std::ssize(visible)) {
      return visible[static_cast<size_t>(own)];
    }
    refuse(preparation_, variable_,
           fmt::format("{} is {} on rank {}: CUDA shows it {} GPU{}, but {} cuda:{}",
                       variable_.name, value_of(rank).empty() ? "empty" : value_of(rank), rank,
                       visible.size(), visible.size() == 1 ? "" : "s",
                       unchecked ? "it trains on" : "the trainer asks for", wanted),
           one_value);
    return std::nullopt;
  }

  Preparation& preparation_;
  const EnvironmentVariable& variable_;
  std::vector<std::string> values_;
};

void check_visible_devices(Preparation& preparation) {
  const Placement& placement = preparation.placement;
  const Launch& launch = placement.launch;
  const EnvironmentVariable* const variable = find(preparation, "CUDA_VISIBLE_DEVICES");
  const bool one_gpu_each = placement.device == DeviceType::cuda && !placement.cpu &&
                            std::ssize(placement.numbers) == launch.processes_per_node &&
                            placement.devices.size() == placement.numbers.size();
  if (variable == nullptr || preparation.scenario->is_bare_program() || !one_gpu_each) {
    return;
  }
  std::vector<std::string> values;
  for (int32_t rank = 0; rank < launch.world_size(); ++rank) {
    values.push_back(value_on(*variable, launch.place_of(rank)));
  }
  VisibleDevices(preparation, *variable, std::move(values)).check();
}

}  // namespace

void prepare_environment(Preparation& preparation) {
  tell_unread(preparation);
  std::vector<EnvironmentFault> faults;
  try {
    faults = environment_faults(preparation.scenario->env, preparation.placement.launch);
  } catch (const EvaluationError& error) {
    return add_problem(preparation, Kind::invalid, error.place(), error.message(), error.remedy());
  }
  for (const EnvironmentFault& fault : faults) {
    refuse(preparation, *fault.variable, fault.message, remedy_of(*fault.variable));
  }
  check_port(preparation);
  check_stall_times(preparation);
  check_visible_devices(preparation);
}

}  // namespace lockstep
