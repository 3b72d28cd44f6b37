#include "model/trainer/prepare/strategy_naming.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/trainer/framework/lightning_versions.hpp"
#include "model/trainer/framework/strategy_choice.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

class StrategyNaming {
 public:
  StrategyNaming(Preparation& preparation, TrainerSpec& trainer, const Version& lightning)
      : preparation_(preparation), trainer_(trainer), lightning_(lightning) {}

  NamedStrategy read() {
    named_.name = trainer_.strategy ? trainer_.strategy->name : "";
    // A variant of a training that was placed before has the strategy that was found then.
    named_.is_elsewhere = trainer_.accelerator && trainer_.accelerator->place.line == 0;
    if (trainer_.strategy && !since(v1_5) && !named_.is_elsewhere) {
      const StrategyName* row = find_strategy_name(named_.name);
      const bool is_type = row != nullptr && row->is_type;
      refuse(trainer_.strategy->place, "`strategy` came with Lightning 1.5",
             fmt::format("write it as {}: {}", is_type ? "accelerator" : "plugins", named_.name));
    }
    take_distributed_backend();
    take_accelerator_for_strategy();
    take_plugin_for_strategy();
    return named_;
  }

 private:
  void refuse(const SourcePlace& place, const std::string& message, const std::string& remedy) {
    add_problem(preparation_, Problem::Kind::refused, place, message, remedy, refused_code);
  }
  bool since(const Version& version) const { return lightning_ >= version; }

  // Up to 1.4 what `accelerator` is, where that is not given as well.
  void take_distributed_backend() {
    const auto given =
        std::ranges::find(trainer_.others, "distributed_backend", &ObjectArgument::name);
    const bool is_known = !since(v1_5) && given != trainer_.others.end();
    const std::string* name = is_known ? given->value.get_if<std::string>() : nullptr;
    if (name != nullptr && !trainer_.accelerator) {
      add_problem(preparation_, Problem::Kind::warning, given->place,
                  "`distributed_backend` has been renamed", "use accelerator", ignored_code);
      trainer_.accelerator = Placed<std::string>{*name, given->place};
    }
  }

  void take_accelerator_for_strategy() {
    const std::string accelerator = value_or(trainer_.accelerator, std::string());
    const auto named = strategy_of_accelerator(accelerator, lightning_);
    if (!named) {
      return;
    }
    const SourcePlace& place = trainer_.accelerator->place;
    const StrategyName* row = find_strategy_name(accelerator);
    const bool is_gone = row != nullptr && lightning_ >= row->until && !row->instead.empty();
    const std::string instead = named->is_cpu ? "write accelerator: cpu and strategy: ddp_spawn"
                                : is_gone     ? fmt::format("use {}", row->instead)
                                              : "write strategy: " + accelerator;
    if (since(v1_7)) {
      refuse(place,
             fmt::format("`accelerator: {}` names a strategy, which Lightning 1.7 removed",
                         accelerator),
             instead);
    } else if (!named->is_taken) {
      refuse(place,
             fmt::format("`accelerator` of Lightning {}.{} does not take {}", lightning_.major,
                         lightning_.minor, accelerator),
             since(v1_5) ? instead : "write plugins: " + accelerator);
    } else if (trainer_.strategy && since(v1_5)) {
      refuse(place,
             fmt::format("one strategy only can be given, but `accelerator: {}` stands beside "
                         "`strategy: {}`",
                         accelerator, named_.name),
             "name the strategy in `strategy`");
    }
    named_.name = named->strategy;
    trainer_.strategy = Object{named_.name, {}, place};
    named_.is_elsewhere = true;
    named_.names_cpu = named->is_cpu;
    trainer_.accelerator.reset();
  }

  void take_plugin_for_strategy() {
    std::vector<Object>& plugins = trainer_.plugins;
    const auto found = std::ranges::find_if(
        plugins, [](const Object& plugin) { return is_strategy_of_plugins(plugin.name); });
    if (found == plugins.end()) {
      return;
    }
    if (since(v1_7)) {
      refuse(found->place,
             fmt::format("`plugins` takes no strategy since Lightning 1.7, but {} is one",
                         found->name),
             "write it as `strategy`");
    } else if (trainer_.strategy && since(v1_5)) {
      refuse(found->place,
             fmt::format("one strategy only can be given, but the plugin {} stands beside "
                         "`strategy: {}`",
                         found->name, trainer_.strategy->name),
             "name the strategy in `strategy`");
    } else {
      trainer_.strategy = *found;
      named_.is_elsewhere = true;
      named_.name = found->name;
    }
    plugins.erase(found);
  }

  Preparation& preparation_;
  TrainerSpec& trainer_;
  const Version& lightning_;
  NamedStrategy named_;
};

}  // namespace

NamedStrategy take_strategy_name(Preparation& preparation, TrainerSpec& trainer,
                                 const Version& lightning) {
  return StrategyNaming(preparation, trainer, lightning).read();
}

}  // namespace lockstep
