// Schedulers of torch.optim.lr_scheduler, with torch's defaults.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "model/scenario/expressions_of.hpp"
#include "model/trainer/prepare/object_arguments.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

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
    {"ReduceLROnPlateau", SchedulerKind::reduce_on_plateau, "", 1, "factor", 0.1, 1},
});

size_t position_of_period(SchedulerKind kind) {
  return kind == SchedulerKind::constant ? 1 : kind == SchedulerKind::linear ? 2 : 0;
}

class SchedulerReader {
 public:
  SchedulerReader(Preparation& preparation, const Object& object)
      : preparation_(preparation), object_(object), arguments_(object) {}

  SchedulerSettings read(const SchedulerClass& of) {
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
    read_how_lightning_steps(settings);
    Site site;
    site.description = object_.name;
    site.file = object_.place.file;
    site.line = object_.place.line;
    site.column = object_.place.column;
    settings.site = preparation_.sites.add(site);
    return settings;
  }

 private:
  bool is_manual() const {
    const auto& program = preparation_.scenario->program;
    return program && !value_or(program->automatic_optimization, true);
  }

  void require(bool holds, const std::string& message, const std::string& remedy = "") {
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

  Preparation& preparation_;
  const Object& object_;
  ObjectArguments arguments_;
};

std::string supported_schedulers() {
  std::string names;
  for (const SchedulerClass& one : scheduler_classes) {
    names += fmt::format("{}{}", names.empty() ? "supported: " : ", ", one.name);
  }
  return names;
}

}  // namespace

void prepare_schedulers(Preparation& preparation, TrainingProgram& program) {
  for (const Object& object : preparation.scenario->schedulers) {
    const auto of =
        std::find_if(scheduler_classes.begin(), scheduler_classes.end(),
                     [&](const SchedulerClass& one) { return one.name == object.name; });
    if (of == scheduler_classes.end()) {
      add_problem(preparation, Kind::unsupported, object.place,
                  fmt::format("the scheduler {} is not modelled yet", object.name),
                  supported_schedulers());
      continue;
    }
    SchedulerSettings settings = SchedulerReader(preparation, object).read(*of);
    settings.optimizer = std::min(settings.optimizer, program.plan.optimizers.size() - 1);
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
