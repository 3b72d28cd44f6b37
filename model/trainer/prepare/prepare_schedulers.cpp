// Schedulers of torch.optim.lr_scheduler, with torch's defaults.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/scenario/expressions_of.hpp"
#include "model/trainer/prepare/object_arguments.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/trainer/prepare/scheduler_arguments.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

/// A class of torch, and the names of its arguments that SchedulerSettings holds.
struct SchedulerClass {
  std::string_view name;
  SchedulerKind kind;
  std::string_view period;  ///< empty: none
  int64_t default_period;   ///< 0: the argument is required
  std::string_view factor;
  double default_factor;
  size_t factor_position;
};

constexpr double third = 1.0 / 3;
constexpr auto scheduler_classes = std::to_array<SchedulerClass>({
    {"StepLR", SchedulerKind::step, "step_size", 0, "gamma", 0.1, 1},
    {"MultiStepLR", SchedulerKind::multi_step, "", 1, "gamma", 0.1, 1},
    {"ConstantLR", SchedulerKind::constant, "total_iters", 5, "factor", third, 0},
    {"LinearLR", SchedulerKind::linear, "total_iters", 5, "start_factor", third, 0},
    {"ExponentialLR", SchedulerKind::exponential, "", 1, "gamma", 0, 0},
    {"PolynomialLR", SchedulerKind::polynomial, "total_iters", 5, "power", 1, 1},
    {"CosineAnnealingLR", SchedulerKind::cosine_annealing, "T_max", 0, "", 0, 0},
    {"CosineAnnealingWarmRestarts", SchedulerKind::cosine_annealing_warm_restarts, "T_0", 0, "", 0,
     0},
    {"OneCycleLR", SchedulerKind::one_cycle_lr, "", 1, "", 0, 0},
    {"CyclicLR", SchedulerKind::cyclic, "", 1, "", 0, 0},
    {"LambdaLR", SchedulerKind::lambda, "", 1, "", 0, 0},
    {"MultiplicativeLR", SchedulerKind::multiplicative, "", 1, "", 0, 0},
    {"get_constant_schedule_with_warmup", SchedulerKind::lambda, "", 1, "", 0, 0},
    {"get_linear_schedule_with_warmup", SchedulerKind::lambda, "", 1, "", 0, 0},
    {"get_cosine_schedule_with_warmup", SchedulerKind::lambda, "", 1, "", 0, 0},
    {"get_inverse_sqrt_schedule", SchedulerKind::lambda, "", 1, "", 0, 0},
    {"SequentialLR", SchedulerKind::sequential, "", 1, "", 0, 0},
    {"ChainedScheduler", SchedulerKind::chained, "", 1, "", 0, 0},
    {"WarmupLR", SchedulerKind::warmup, "", 1, "", 0, 0},
    {"WarmupDecayLR", SchedulerKind::warmup_decay, "", 1, "", 0, 0},
    {"WarmupCosineLR", SchedulerKind::warmup_cosine, "", 1, "", 0, 0},
    {"OneCycle", SchedulerKind::one_cycle, "", 1, "", 0, 0},
    {"LRRangeTest", SchedulerKind::range_test, "", 1, "", 0, 0},
    {"ReduceLROnPlateau", SchedulerKind::reduce_on_plateau, "", 1, "factor", 0.1, 1},
});

size_t position_of_period(SchedulerKind kind) {
  return kind == SchedulerKind::constant ? 1 : kind == SchedulerKind::linear ? 2 : 0;
}

const SchedulerClass* class_of(const Object& object) {
  const auto of = std::ranges::find(scheduler_classes, object.name, &SchedulerClass::name);
  return of == scheduler_classes.end() ? nullptr : &*of;
}

void add_unsupported(Preparation& preparation, const Object& object) {
  std::string names;
  for (const SchedulerClass& one : scheduler_classes) {
    names += fmt::format("{}{}", names.empty() ? "supported: " : ", ", one.name);
  }
  add_problem(preparation, Kind::unsupported, object.place,
              fmt::format("the scheduler {} is not modelled yet", object.name), names);
}

class SchedulerReader {
 public:
  SchedulerReader(Preparation& preparation, const Object& object)
      : preparation_(preparation), object_(object), arguments_(object) {}

  SchedulerSettings read(const SchedulerClass& of) {
    SchedulerSettings settings = read_inner(of);
    read_how_lightning_steps(settings);
    return settings;
  }

 private:
  /// Without what Lightning's configuration of a scheduler has.
  SchedulerSettings read_inner(const SchedulerClass& of) {
    SchedulerSettings settings;
    settings.kind = of.kind;
    settings.name = object_.name;
    if (!of.factor.empty()) {
      settings.factor = arguments_.number(of.factor, of.default_factor, of.factor_position);
    }
    if (!of.period.empty()) {
      settings.period =
          arguments_.integer(of.period, of.default_period, position_of_period(of.kind));
      // Those with total_iters only compare with it; the others divide by theirs.
      const int64_t least = of.period == "total_iters" ? 0 : 1;
      require(settings.period >= least, fmt::format("`{}` is at least {}", of.period, least),
              fmt::format("write {}: {} or more", of.period, least));
    }
    read_own(settings);
    Site site;
    site.description = object_.name;
    site.file = object_.place.file;
    site.line = object_.place.line;
    site.column = object_.place.column;
    settings.site = preparation_.sites.add(site);
    return settings;
  }

  bool is_manual() const {
    const auto& program = preparation_.scenario->program;
    return program && !value_or(program->automatic_optimization, true);
  }

  void require(bool holds, const std::string& message,
               const std::string& remedy = "write a value that torch accepts") {
    if (!holds) {
      add_problem(preparation_, Kind::refused, object_.place,
                  fmt::format("{}: {}", object_.name, message), remedy, refused_code);
    }
  }

  void read_own(SchedulerSettings& settings) {
    const bool from_one = settings.kind == SchedulerKind::exponential;
    require(!from_one || arguments_.find("gamma", 0) != nullptr, "`gamma` is required");
    const bool is_fraction =
        settings.kind == SchedulerKind::constant || settings.kind == SchedulerKind::linear;
    require(!is_fraction || (settings.factor > 0 || settings.kind == SchedulerKind::constant),
            "the first factor is greater than 0");
    require(!is_fraction || settings.factor <= 1, "the first factor is at most 1");
    require(arguments_.integer("last_epoch", -1) == -1,
            "`last_epoch` continues a training; a "
            "scenario begins one");
    settings.period_factor = arguments_.integer("T_mult", 1, 1);
    settings.end_factor = arguments_.number("end_factor", 1, 1);
    settings.least = arguments_.number("eta_min", arguments_.number("min_lr", 0));
    if (settings.kind == SchedulerKind::multi_step) {
      read_milestones(settings);
    }
    if (settings.is_monitored()) {
      read_plateau(settings);
    }
    switch (settings.kind) {
      case SchedulerKind::one_cycle_lr:
      case SchedulerKind::cyclic:
        settings.of_cycle = cycle_settings_of(preparation_, object_);
        break;
      case SchedulerKind::lambda:
      case SchedulerKind::multiplicative:
        settings.rate_factor = rate_factor_of(preparation_, object_);
        break;
      case SchedulerKind::sequential:
      case SchedulerKind::chained: read_schedulers(settings); break;
      default: break;
    }
    if (settings.counts_iterations()) {
      read_iterations(settings.kind, settings.of_iterations);
    }
  }

  void read_schedulers(SchedulerSettings& settings) {
    for (const Object& inner : held_schedulers(object_)) {
      const SchedulerClass* const of = class_of(inner);
      if (of == nullptr) {
        add_unsupported(preparation_, inner);
        continue;
      }
      SchedulerReader reader(preparation_, inner);
      settings.schedulers.push_back(reader.read_inner(*of));
      for (const char* const name : {"interval", "frequency", "monitor", "strict", "optimizer"}) {
        // One that monitors is refused as such.
        reader.require(
            reader.arguments_.find(name) == nullptr || settings.schedulers.back().is_monitored(),
            fmt::format("`{}` says how Lightning steps a scheduler, and it steps {}", name,
                        object_.name),
            fmt::format("write `{}` among the arguments of {}", name, object_.name));
      }
    }
    if (settings.kind == SchedulerKind::sequential) {
      read_milestones(settings);
    }
    check_held(preparation_, object_, settings);
  }

  void read_iterations(SchedulerKind kind, IterationSettings& of) {
    if (arguments_.integer("last_batch_iteration", -1) != -1) {
      add_problem(preparation_, Kind::unsupported, object_.place,
                  fmt::format("{}: `last_batch_iteration` continues a training; a scenario begins "
                              "one",
                              object_.name),
                  "leave it out");
    }
    if (!arguments_.boolean("by_configuration", false)) {
      check_stepped_by_hook();
    }
    switch (kind) {
      case SchedulerKind::one_cycle: read_cycle(of); break;
      case SchedulerKind::range_test: read_range_test(of); break;
      default: read_warmup(kind, of);
    }
  }

  // _validate_scheduler_api of pytorch_lightning/core/optimizer.py: none of them is torch's. It
  // came with the hook, and asks nothing of manual optimization since issue 18074.
  void check_stepped_by_hook() {
    const Version& lightning = preparation_.placement.lightning;
    if (lightning < Version{1, 6, 0} || (is_manual() && lightning >= Version{2, 1, 0})) {
      return;
    }
    const auto& program = preparation_.scenario->program;
    require(program && program->find("lr_scheduler_step") != nullptr,
            "MisconfigurationException: The provided lr scheduler doesn't follow PyTorch's "
            "LRScheduler API. You should override the `LightningModule.lr_scheduler_step` hook",
            "write the hook: lr_scheduler_step: [lr_scheduler_step]; or put the scheduler into "
            "DeepSpeed's configuration");
  }

  void read_warmup(SchedulerKind kind, IterationSettings& of) {
    const bool is_cosine = kind == SchedulerKind::warmup_cosine;
    const size_t first = kind == SchedulerKind::warmup ? 0 : 1;  // total_num_steps is before them
    of.low = arguments_.number(is_cosine ? "warmup_min_ratio" : "warmup_min_lr", 0, first);
    of.high = arguments_.number("warmup_max_lr", of.high, is_cosine ? none : first + 1);
    of.warmup = arguments_.number("warmup_num_steps", of.warmup, first + (is_cosine ? 1 : 2));
    of.last_ratio = arguments_.number("cos_min_ratio", of.last_ratio, is_cosine ? 3 : none);
    read_warmup_type(is_cosine, is_cosine ? 4 : first + 3, of);
    require(first == 0 || arguments_.find("total_num_steps", 0) != nullptr,
            "`total_num_steps` is required");
    of.total = arguments_.number("total_num_steps", 0, first == 0 ? none : 0);
  }

  // WarmupLR and WarmupDecayLR look at it when they are made, WarmupCosineLR in its first step.
  void read_warmup_type(bool is_cosine, size_t position, IterationSettings& of) {
    const std::string type = arguments_.text("warmup_type", "log", position);
    of.is_linear = type == "linear";
    if (of.is_linear || type == "log") {
      return;
    }
    require(!is_cosine,
            fmt::format("UnboundLocalError: cannot access local variable 'ratio': `warmup_type` is "
                        "log or linear, not `{}`",
                        type),
            "write warmup_type: linear, or leave it out for log");
    if (!is_cosine) {
      add_problem(preparation_, Kind::warning, object_.place,
                  fmt::format("{}: the warmup_type `{}` is unknown, and DeepSpeed takes log",
                              object_.name, type),
                  "write warmup_type: linear, or leave it out for log", ignored_code);
    }
  }

  void read_cycle(IterationSettings& of) {
    for (const auto& [name, position] :
         {std::pair("cycle_min_lr", size_t{0}), std::pair("cycle_max_lr", size_t{1})}) {
      require(arguments_.find(name, position) != nullptr, fmt::format("`{}` is required", name));
    }
    of.low = arguments_.number("cycle_min_lr", 0, 0);
    of.high = arguments_.number("cycle_max_lr", 0, 1);
    of.decay_rate = arguments_.number("decay_lr_rate", 0, 2);
    of.first_size = arguments_.number("cycle_first_step_size", of.first_size, 3);
    of.second_size = arguments_.number("cycle_second_step_size", of.first_size, 4);
    of.decay_size = arguments_.number("decay_step_size", 0, 7);
    of.cycles_momentum = arguments_.boolean("cycle_momentum", true);
    of.low_momentum = arguments_.number("cycle_min_mom", of.low_momentum, 9);
    of.high_momentum = arguments_.number("cycle_max_mom", of.high_momentum, 10);
    of.momentum_decay_rate = arguments_.number("decay_mom_rate", 0, 11);
    // lr_schedules.py, _get_scale_factor: 0.19.4 has stairs, 0.19.3 takes their counts and has
    // none.
    constexpr Version first_with_stairs{0, 19, 4};
    const bool has_stairs = arguments_.number("cycle_first_stair_count", 0, 5) > 0 ||
                            arguments_.number("cycle_second_stair_count", 0, 6) > 0;
    if (has_stairs && deepspeed_release(*preparation_.scenario, preparation_.placement.lightning) >=
                          first_with_stairs) {
      add_problem(preparation_, Kind::unsupported, object_.place,
                  "OneCycle in stairs, as DeepSpeed from 0.19.4 on has it, is not modelled",
                  "leave `cycle_first_stair_count` and `cycle_second_stair_count` out");
    }
    // Adam divides by 1 - beta^step; DeepSpeed sets the beta without a look at it.
    if (of.cycles_momentum && std::max(of.low_momentum, of.high_momentum) >= 1) {
      add_problem(preparation_, Kind::unsupported, object_.place,
                  "OneCycle with a momentum of 1 or more is not modelled: Adam divides by 1 - "
                  "beta^step, which is 0 then, and the weights are no numbers from there on",
                  "write cycle_min_mom and cycle_max_mom below 1, as 0.8 and 0.9");
    }
    require(of.first_size + of.second_size != 0,
            "ZeroDivisionError: float division by zero: the cycle has no steps",
            "write cycle_first_step_size: 1 or more");
  }

  void read_range_test(IterationSettings& of) {
    of.low = arguments_.number("lr_range_test_min_lr", 1e-3, 0);
    of.step_size = arguments_.number("lr_range_test_step_size", of.step_size, 1);
    of.step_rate = arguments_.number("lr_range_test_step_rate", of.step_rate, 2);
    of.in_stairs = arguments_.boolean("lr_range_test_staircase", false);
    require(of.step_size != 0,
            "ZeroDivisionError: float division by zero: `lr_range_test_step_size` is 0",
            "write lr_range_test_step_size: 1 or more");
  }

  void read_milestones(SchedulerSettings& settings) {
    const PlainValue* const given = arguments_.find("milestones", 0);
    const auto* const list = given == nullptr ? nullptr : given->get_if<PlainValue::List>();
    require(list != nullptr, "`milestones` is a list of epochs");
    for (const PlainValue& one : list == nullptr ? PlainValue::List() : *list) {
      const int64_t* const epoch = one.get_if<int64_t>();
      require(epoch != nullptr, "`milestones` is a list of epochs");
      settings.milestones.push_back(epoch == nullptr ? 0 : *epoch);
    }
  }

  void read_plateau(SchedulerSettings& settings) {
    const std::string mode = arguments_.text("mode", "min", 0);
    const std::string threshold_mode = arguments_.text("threshold_mode", "rel");
    require(mode == "min" || mode == "max", fmt::format("mode {} is unknown", mode));
    require(threshold_mode == "rel" || threshold_mode == "abs",
            fmt::format("threshold mode {} is unknown", threshold_mode));
    require(settings.factor < 1, "Factor should be < 1.0");
    settings.higher_is_better = mode == "max";
    settings.patience = arguments_.integer("patience", 10, 2);
    settings.threshold = arguments_.number("threshold", 1e-4);
    settings.threshold_is_relative = threshold_mode == "rel";
    settings.cooldown = arguments_.integer("cooldown", 0);
    settings.eps = arguments_.number("eps", 1e-8);
  }

  void read_how_lightning_steps(SchedulerSettings& settings) {
    const std::string interval = arguments_.text("interval", "epoch");
    require(interval == "epoch" || interval == "step",
            fmt::format("The \"interval\" key in lr scheduler dict must be \"step\" or \"epoch\" "
                        "but is \"{}\"",
                        interval));
    settings.interval = interval == "step" ? SchedulerInterval::step : SchedulerInterval::epoch;
    settings.frequency = arguments_.integer("frequency", 1);
    require(settings.frequency >= 1, "`frequency` is at least 1");
    settings.optimizer = index_of_optimizer(arguments_.text("optimizer"));
    settings.monitor = arguments_.text("monitor");
    settings.strict = arguments_.boolean("strict", true);
    require(!settings.is_monitored() || !settings.monitor.empty() || is_manual(),
            "The lr scheduler dict must include a monitor when a `ReduceLROnPlateau` scheduler is "
            "used",
            "add monitor: val_loss");
  }

  // By its extra argument `name`; the loader has checked that it exists.
  size_t index_of_optimizer(const std::string& name) const {
    const std::vector<Object>& optimizers = preparation_.scenario->optimizers;
    for (size_t i = 0; i < optimizers.size() && !name.empty(); ++i) {
      if (ObjectArguments(optimizers[i]).text("name") == name) {
        return i;
      }
    }
    return 0;
  }

  static constexpr size_t none = ObjectArguments::none;

  Preparation& preparation_;
  const Object& object_;
  ObjectArguments arguments_;
};

}  // namespace

void prepare_schedulers(Preparation& preparation, TrainingProgram& program) {
  for (const Object& object : preparation.scenario->schedulers) {
    const SchedulerClass* const of = class_of(object);
    if (of == nullptr) {
      add_unsupported(preparation, object);
      continue;
    }
    SchedulerSettings settings = SchedulerReader(preparation, object).read(*of);
    settings.optimizer = std::min(settings.optimizer, program.plan.optimizers.size() - 1);
    take_cycled_momentum(preparation, object, settings, program);
    program.schedulers.push_back(std::move(settings));
    const auto& own = preparation.scenario->program;
    if (!program.trainer.automatic_optimization &&
        find_statement(*own, StatementKind::lr_scheduler_step) == nullptr) {
      add_problem(preparation, Kind::note, object.place,
                  fmt::format("Lightning does not step {} under manual optimization", object.name),
                  "step it in a hook: lr_scheduler_step");
    }
  }
}

}  // namespace lockstep
