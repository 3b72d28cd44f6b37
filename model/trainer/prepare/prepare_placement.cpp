// Accelerator, devices and strategy: what the Trainer's arguments become before anything else.
#include <fmt/format.h>

#include <algorithm>

#include "model/cluster/presets.hpp"
#include "model/expression/evaluation_error.hpp"
#include "model/scenario/defaults.hpp"
#include "model/trainer/framework/accelerator_choice.hpp"
#include "model/trainer/framework/device_request.hpp"
#include "model/trainer/framework/lightning_versions.hpp"
#include "model/trainer/framework/strategy_versions.hpp"
#include "model/trainer/framework/tpu_request.hpp"
#include "model/trainer/framework/trainer_arguments.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/trainer/prepare/strategy_behind.hpp"
#include "model/trainer/prepare/strategy_naming.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

class Placing {
 public:
  Placing(Preparation& preparation, Scenario& scenario, const StrategyRegistry& registry)
      : preparation_(preparation),
        registry_(registry),
        placement_(preparation.placement),
        scenario_(scenario),
        trainer_(*scenario.trainer) {}

  void run() {
    placement_.lightning = lightning_version();
    placement_.nodes = value_or(trainer_.num_nodes, int64_t{1});
    launcher_ = scenario_.launcher ? scenario_.launcher->name : "lightning";
    placement_.interactive = launcher_ == "notebook";
    read_machine();
    const NamedStrategy named = take_strategy_name(preparation_, trainer_, placement_.lightning);
    strategy_ = named.name;
    accelerator_names_cpu_ = named.names_cpu;
    check_argument_versions(preparation_, trainer_);
    choose_accelerator();
    choose_devices();
    strategy_ = replace_by_strategy_behind(preparation_, scenario_, registry_, strategy_,
                                           std::ssize(placement_.devices) * placement_.nodes);
    choose_strategy_and_precision();
    check_nodes();
    trainer_.accelerator = Placed<std::string>{
        std::string(name_of_accelerator()),
        named.is_elsewhere ? SourcePlace{scenario_.file, 0, 0} : place_of_accelerator()};
  }

 private:
  void refuse(const SourcePlace& place, const std::string& message, const std::string& remedy) {
    add_problem(preparation_, Kind::refused, place, message, remedy, refused_code);
  }
  void warn(const SourcePlace& place, const std::string& message, const std::string& remedy = "") {
    add_problem(preparation_, Kind::warning, place, message, remedy, ignored_code);
  }
  bool since(const Version& version) const { return placement_.lightning >= version; }
  SourcePlace place_of_accelerator() const {
    return trainer_.accelerator ? trainer_.accelerator->place : SourcePlace{scenario_.file, 0, 0};
  }
  SourcePlace place_of_strategy() const {
    return trainer_.strategy ? trainer_.strategy->place : trainer_.place;
  }

  std::string_view name_of_accelerator() const {
    const bool is_cuda = placement_.device == DeviceType::cuda;
    return placement_.cpu                         ? "cpu"
           : is_cuda                              ? "gpu"
           : placement_.device == DeviceType::tpu ? "tpu"
                                                  : "mps";
  }

  Version lightning_version() const {
    if (const std::optional<Version> given = version_asked(scenario_, "lightning")) {
      return *given;
    }
    // The argument itself came with 1.5.
    Version newest = std::max(Version{1, 5, 10},
                              newest_with_strategy(trainer_.strategy ? trainer_.strategy->name : "")
                                  .value_or(Version{2, 6, 0}));
    if (std::ranges::any_of(trainer_.plugins, is_strategy_of_plugins, &Object::name)) {
      newest = std::min(newest, Version{1, 6, 5});
    }
    return std::min({newest, newest_with_hooks(scenario_).value_or(newest),
                     newest_with_arguments(trainer_).value_or(newest)});
  }

  void read_machine() {
    const bool given = scenario_.cluster.has_value();
    const std::string assumed = assumed_cluster(scenario_);
    const std::string name = given ? value_or(scenario_.cluster->preset, assumed) : assumed;
    const std::optional<Cluster> preset = cluster_preset(name);
    int64_t present = preset ? preset->node.devices : 8;
    const std::optional<Cluster> like =
        preset ? preset : cluster_preset(find_cluster_name(name).name);
    machine_ = like ? like->node.device.type : DeviceType::cuda;
    capability_ = preset ? preset->node.device.compute_capability : 90;
    if (given && scenario_.cluster->gpu && scenario_.cluster->gpu->preset) {
      const auto gpu = device_preset(scenario_.cluster->gpu->preset->value);
      capability_ = gpu ? gpu->compute_capability : capability_;
      machine_ = gpu ? gpu->type : machine_;
    }
    const bool has_gpus = name != "cpu" || (given && scenario_.cluster->gpu);
    present = !has_gpus ? 0 : given ? value_or(scenario_.cluster->gpus, present) : present;
    machine_ = has_gpus ? machine_ : DeviceType::cpu;
    placement_.present = present;
    const bool is_shown_by_cuda = machine_ == DeviceType::cuda || machine_ == DeviceType::cpu;
    visible_ = visible_devices(is_shown_by_cuda ? variable("CUDA_VISIBLE_DEVICES") : std::nullopt,
                               present);
    if (given) {
      for (const Placed<int64_t>& taken : scenario_.cluster->occupied) {
        const auto found = std::find(visible_.begin(), visible_.end(), taken.value);
        if (found != visible_.end()) {
          occupied_.push_back(found - visible_.begin());
        }
      }
    }
  }

  // On rank 0, which asks for devices first.
  std::optional<std::string> variable(std::string_view name) {
    for (const EnvironmentVariable& each : scenario_.env) {
      if (each.name == name) {
        try {
          return value_on(each, Place{});
        } catch (const EvaluationError&) {
          return std::nullopt;  // reported with the other variables
        }
      }
    }
    return std::nullopt;
  }

  static bool is_given(const std::optional<PlainValue>& value) {
    return value && !value->is_null();
  }

  // Of the arguments that only some versions have.
  const PlainValue* tpu_cores() const {
    const auto given = std::ranges::find(trainer_.others, "tpu_cores", &ObjectArgument::name);
    const bool counts = given != trainer_.others.end() && !given->value.is_null() && !since(v2_0);
    return counts ? &given->value : nullptr;
  }

  void choose_accelerator() {
    AcceleratorSituation situation;
    situation.lightning = placement_.lightning;
    situation.machine = machine_;
    situation.is_visible = !visible_.empty();
    situation.is_cpu_by_strategy = accelerator_names_cpu_;
    situation.gives_gpus = is_given(trainer_.gpus);
    situation.gives_devices = is_given(trainer_.devices);
    situation.gives_tpu_cores = tpu_cores() != nullptr;
    const AcceleratorChoice choice =
        lockstep::choose_accelerator(value_or(trainer_.accelerator, std::string()), situation);
    placement_.device = choice.device;
    placement_.cpu = choice.device == DeviceType::cpu;
    const SourcePlace place = trainer_.accelerator         ? trainer_.accelerator->place
                              : choice.is_refused_by_cores ? tpu_cores()->place
                              : is_given(trainer_.gpus)    ? trainer_.gpus->place
                              : is_given(trainer_.devices) ? trainer_.devices->place
                                                           : trainer_.place;
    if (choice.refusal && choice.refusal->is_name) {
      refuse(place, choice.refusal->message, choice.refusal->remedy);
    } else if (choice.refusal) {
      add_problem(preparation_, Kind::invalid, place, choice.refusal->message,
                  choice.refusal->remedy);
    }
    if (!choice.warning.empty()) {
      warn(place, choice.warning, choice.remedy);
    }
    if (tpu_cores() != nullptr && placement_.device != DeviceType::tpu) {
      warn(tpu_cores()->place, "`tpu_cores` is ignored: the accelerator is not a TPU");
    }
  }

  DeviceAnswer devices_asked(const PlainValue* value) {
    if (!placement_.cpu && placement_.device == DeviceType::tpu) {
      return devices_of_tpu(value, placement_.lightning, std::ssize(visible_));
    }
    if (!placement_.cpu && placement_.device == DeviceType::mps) {
      return devices_of_mps(value);
    }
    DeviceSituation situation;
    situation.lightning = placement_.lightning;
    situation.cpu = placement_.cpu;
    situation.visible = static_cast<int64_t>(visible_.size());
    situation.occupied = occupied_;
    situation.interactive = placement_.interactive;
    situation.elastic = launcher_ == "torchrun";
    situation.auto_select = value_or(trainer_.auto_select_gpus, false);
    const DeviceArgument name =
        is_given(trainer_.gpus) ? DeviceArgument::gpus : DeviceArgument::devices;
    return devices_of(value, name, situation);
  }

  void choose_devices() {
    const PlainValue* value = devices_asked_ = value_of_devices();
    const DeviceAnswer answer = devices_asked(value);
    const SourcePlace place = value == nullptr ? trainer_.place : value->place;
    placement_.devices = {0};
    if (answer.verdict == DeviceAnswer::Verdict::refused) {
      refuse(place, answer.message, answer.remedy);
    } else if (answer.verdict == DeviceAnswer::Verdict::invalid) {
      add_problem(preparation_, Kind::invalid, place, answer.message, answer.remedy);
    } else {
      accept(answer, place);
    }
  }

  // `gpus` and `num_processes` win over `devices`; of the two the first that counts.
  const PlainValue* value_of_devices() {
    const std::optional<PlainValue>& devices = trainer_.devices;
    if (tpu_cores() != nullptr && placement_.device == DeviceType::tpu) {
      return tpu_cores();
    }
    const bool has_processes = value_or(trainer_.num_processes, int64_t{0}) > 0;
    const bool counts_processes = has_processes && placement_.cpu;
    if (is_given(trainer_.gpus) && !placement_.cpu) {
      if (is_given(devices)) {
        warn(devices->place, "`devices` is ignored: `gpus` is given too");
      }
      return &*trainer_.gpus;
    }
    if (counts_processes) {
      if (is_given(devices)) {
        warn(devices->place, "`devices` is ignored: `num_processes` is given too");
      }
      processes_ = PlainValue{trainer_.num_processes->value, trainer_.num_processes->place};
      return &processes_;
    }
    if (is_given(trainer_.gpus)) {
      warn(trainer_.gpus->place, "`gpus` is ignored: the accelerator is the CPU");
    }
    if (has_processes) {
      warn(trainer_.num_processes->place,
           "`num_processes` is ignored: the accelerator is not the CPU");
    }
    return is_given(devices) ? &*devices : nullptr;
  }

  void accept(const DeviceAnswer& answer, const SourcePlace& place) {
    placement_.devices = placement_.numbers = answer.indices;
    placement_.visible = std::ssize(visible_);
    if (!answer.warning.empty()) {
      warn(place, answer.warning);
    }
    if (answer.no_gpu && !placement_.cpu) {
      placement_.cpu = true;
      placement_.device = DeviceType::cpu;
      placement_.devices.resize(
          static_cast<size_t>(std::max<int64_t>(1, value_or(trainer_.num_processes, int64_t{1}))));
      for (size_t index = 0; index < placement_.devices.size(); ++index) {
        placement_.devices[index] = static_cast<int64_t>(index);
      }
      warn(place, "no GPU is asked for: Lightning trains on CPU");
    } else if (!placement_.cpu) {
      for (int64_t& index : placement_.devices) {
        const auto at = static_cast<size_t>(index);
        index = at < visible_.size() ? visible_[at] : index;
      }
    }
  }

  void choose_strategy_and_precision() {
    StrategySituation situation;
    situation.lightning = placement_.lightning;
    situation.cpu = placement_.cpu;
    situation.device = placement_.device;
    situation.devices = std::ssize(placement_.devices);
    situation.nodes = placement_.nodes;
    situation.interactive = placement_.interactive;
    situation.started_externally = launcher_ == "torchrun" || launcher_ == "srun";
    situation.horovodrun = launcher_ == "horovodrun" || launcher_ == "mpirun";
    StrategyChoice& choice = placement_.strategy;
    choice = choose_strategy(strategy_, situation, registry_);
    read_start_method(choice);
    read_entry(choice);
    if (choice.is_horovod && choice.refusal.empty()) {
      take_processes_of_launcher(preparation_, scenario_, {visible_, devices_asked_});
    }
    if (choice.is_unmodelled) {
      add_problem(preparation_, Kind::unsupported, place_of_strategy(), choice.refusal,
                  choice.remedy);
    } else if (!choice.refusal.empty()) {
      refuse(place_of_strategy(), choice.refusal, choice.remedy);
    }
    if (!choice.warning.empty()) {
      warn(place_of_strategy(), choice.warning);
    }
    PrecisionSituation precision;
    precision.lightning = placement_.lightning;
    precision.torch = torch_used(scenario_, placement_.lightning);
    precision.strategy = choice.name;
    precision.traits = placement_.traits;
    precision.cpu = placement_.cpu;
    precision.device = placement_.device;
    precision.compute_capability = capability_;
    precision.apex = value_or(trainer_.amp_backend, std::string()) == "apex";
    const char* by_default = since(v2_0) ? "32-true" : "32";
    placement_.precision =
        choose_precision(value_or(trainer_.precision, std::string(by_default)), precision);
    tell_precision();
  }

  void read_entry(const StrategyChoice& choice) {
    const StrategyEntry* entry = registry_.find(choice.name);
    if (entry != nullptr) {
      placement_.traits = entry->traits;
      placement_.strategy_class = entry->class_name;
    }
    if (clips_shards_by_norm(choice.name, placement_.lightning)) {
      placement_.traits.clips_by_norm = true;
      placement_.traits.manual_clipping = ManualClipping::clips;
    }
  }

  void tell_precision() {
    if (!trainer_.precision) {
      return;
    }
    const PrecisionChoice& precision = placement_.precision;
    if (!precision.refusal.empty()) {
      refuse(trainer_.precision->place, precision.refusal, precision.remedy);
    }
    if (!precision.warning.empty()) {
      warn(trainer_.precision->place, precision.warning);
    }
    if (!precision.note.empty()) {
      add_problem(preparation_, Kind::note, trainer_.precision->place, precision.note);
    }
  }

  // 2.x has one class for all ways to start, 1.x one for spawn and fork.
  void read_start_method(StrategyChoice& choice) {
    const PlainValue* method =
        trainer_.strategy ? trainer_.strategy->find("start_method") : nullptr;
    const std::string* text = method == nullptr ? nullptr : method->get_if<std::string>();
    if (text != nullptr && !start_by(*text, registry_, choice)) {
      add_problem(preparation_, Kind::invalid, method->place,
                  fmt::format("`start_method` cannot be {}", *text),
                  choice.start == StartMethod::script ? "use popen, spawn or fork" : "use spawn");
    }
  }

  void check_nodes() {
    const int64_t there =
        scenario_.cluster ? value_or(scenario_.cluster->nodes, placement_.nodes) : placement_.nodes;
    if (there < placement_.nodes) {
      refuse(trainer_.num_nodes ? trainer_.num_nodes->place : scenario_.launcher->place,
             fmt::format("{} nodes are requested, but the cluster has {}", placement_.nodes, there),
             "set cluster.nodes");
    }
  }

  Preparation& preparation_;
  const StrategyRegistry& registry_;
  Placement& placement_;
  Scenario& scenario_;
  TrainerSpec& trainer_;
  std::string launcher_;
  std::string strategy_;
  bool accelerator_names_cpu_ = false;
  int capability_ = 0;
  DeviceType machine_ = DeviceType::cuda;  ///< what a node has
  std::vector<int64_t> visible_;           ///< places of the GPUs that CUDA shows
  std::vector<int64_t> occupied_;          ///< of them, by their number among the visible
  PlainValue processes_;
  const PlainValue* devices_asked_ = nullptr;  ///< what says how many; null: nothing does
};

}  // namespace

void prepare_placement(Preparation& preparation, Scenario& scenario,
                       const StrategyRegistry& registry) {
  if (!scenario.trainer) {
    scenario.trainer.emplace();
    scenario.trainer->place = SourcePlace{scenario.file, 0, 0};
  }
  take_nodes_of_torchrun(preparation, scenario);
  Placing(preparation, scenario, registry).run();
}

}  // namespace lockstep
