#include "model/trainer/prepare/compared_launch.hpp"

#include <fmt/format.h>

#include <iterator>

#include "model/trainer/framework/lightning_versions.hpp"

namespace lockstep {

namespace {

bool counts_processes_of_horovod(std::string_view launcher) {
  return launcher == "horovodrun" || launcher == "mpirun";
}

// The argument that the training counts its devices by.
std::string key_of_devices(const TrainerSpec& trainer, bool cpu) {
  if (cpu) {
    return trainer.num_processes ? "trainer.num_processes" : "trainer.devices";
  }
  return trainer.gpus && !trainer.gpus->is_null() ? "trainer.gpus" : "trainer.devices";
}

ComparedLaunch launch_of_horovod(const Scenario& scenario, const Placement& placement,
                                 const Placement& as_written) {
  const TrainerSpec& trainer = *scenario.trainer;
  const std::string launcher = scenario.launcher ? scenario.launcher->name : "lightning";
  const int64_t devices = std::ssize(as_written.devices);
  const bool is_external = launcher != "lightning" && launcher != "notebook";
  const bool counts_gpus = !placement.cpu && devices > 1 && placement.lightning < v1_6;
  const bool is_asked = scenario.launcher && scenario.launcher->place.line > 0;
  ComparedLaunch launch;
  if (launcher == "notebook") {
    return launch;
  }
  if (trainer.num_nodes && trainer.num_nodes->value != 1) {
    launch.settings.emplace_back("trainer.num_nodes=null");
  }
  if (counts_gpus) {
    launch.settings.push_back(key_of_devices(trainer, placement.cpu) + "=1");
  }
  if (!counts_processes_of_horovod(launcher) &&
      (is_external || is_asked || counts_gpus || as_written.nodes > 1)) {
    const std::vector<int64_t> slots(static_cast<size_t>(as_written.nodes), devices);
    launch.by = "horovodrun";
    launch.settings.push_back(fmt::format("launcher={{horovodrun: {{np: {}, hosts: [{}]}}}}",
                                          as_written.nodes * devices, fmt::join(slots, ", ")));
  }
  return launch;
}

// Lightning has as many processes on every node.
ComparedLaunch launch_of_others(const Scenario& scenario, const Placement& placement,
                                const Placement& as_written) {
  const std::string launcher = scenario.launcher ? scenario.launcher->name : "lightning";
  const bool is_unread =
      launcher == "horovodrun" || (launcher == "mpirun" && placement.lightning < v2_0);
  const bool is_external = launcher != "lightning" && launcher != "notebook";
  const bool has_own_processes = placement.launch.start != StartMethod::script ||
                                 placement.traits.is_one_process() ||
                                 placement.traits.drives_all_devices();
  ComparedLaunch launch;
  if (!is_unread && !(is_external && has_own_processes)) {
    return launch;
  }
  if (as_written.strategy.is_horovod && as_written.launch.is_uneven()) {
    return launch;
  }
  launch.by = "Lightning";
  launch.settings = {"launcher=lightning"};
  if (as_written.strategy.is_horovod) {
    launch.settings.push_back(fmt::format("{}={}", key_of_devices(*scenario.trainer, placement.cpu),
                                          as_written.devices.size()));
  }
  if (as_written.nodes > 1) {
    launch.settings.push_back(fmt::format("trainer.num_nodes={}", as_written.nodes));
  }
  return launch;
}

}  // namespace

ComparedLaunch launch_to_compare(const Scenario& scenario, const Placement& placement,
                                 const Placement& as_written) {
  if (!placement.strategy.refusal.empty()) {
    return {};
  }
  return placement.strategy.is_horovod ? launch_of_horovod(scenario, placement, as_written)
                                       : launch_of_others(scenario, placement, as_written);
}

}  // namespace lockstep
