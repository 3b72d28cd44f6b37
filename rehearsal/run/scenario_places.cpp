#include "rehearsal/run/scenario_places.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "model/trainer/prepare/strategy_arguments.hpp"

namespace lockstep::cli {

namespace {

class Keys {
 public:
  explicit Keys(Sites& sites) : sites_(sites) {}

  void add(const SourcePlace& place, const std::string& path) {
    if (place.line == 0) {
      return;  // a default
    }
    Site site;
    site.description = path;
    site.file = place.file;
    site.line = place.line;
    site.column = place.column;
    sites_.add(site);
  }

  template <class Given>
  void add_given(const Given& given, const std::string& path) {
    if (given) {
      add(given->place, path);
    }
  }

  void add_loader(const LoaderSpec& loader, const std::string& path) {
    add(loader.place, path);
    add_given(loader.samples, path + ".samples");
    add_given(loader.tokens, path + ".tokens");
    add_given(loader.batches, path + ".batches");
    add_given(loader.batch_size, path + ".batch_size");
    add_given(loader.shuffle, path + ".shuffle");
    add_given(loader.drop_last, path + ".drop_last");
    add_given(loader.iterable, path + ".iterable");
    add_given(loader.sampler, path + ".sampler");
    add_given(loader.sampler_drop_last, path + ".sampler_drop_last");
    add_given(loader.set_epoch, path + ".set_epoch");
    add_given(loader.sample_time, path + ".sample_time");
  }

  void add_data(const DataSpec& data) {
    add(data.place, "data");
    for (const auto& [loaders, name] :
         {std::pair(&data.train, "data.train"), std::pair(&data.val, "data.val"),
          std::pair(&data.test, "data.test"), std::pair(&data.predict, "data.predict")}) {
      for (const LoaderSpec& loader : *loaders) {
        add_loader(loader, name);
      }
    }
  }

  void add_trainer(const TrainerSpec& trainer) {
    add(trainer.place, "trainer");
    add_given(trainer.strategy, "trainer.strategy");
    if (trainer.strategy) {
      add_unequal_arguments(*trainer.strategy);
    }
    add_given(trainer.accumulate_grad_batches, "trainer.accumulate_grad_batches");
    add_given(trainer.gradient_clip_val, "trainer.gradient_clip_val");
    add_given(trainer.use_distributed_sampler, "trainer.use_distributed_sampler");
    add_given(trainer.replace_sampler_ddp, "trainer.replace_sampler_ddp");
    for (const Object& callback : trainer.callbacks) {
      add(callback.place, "trainer.callbacks");
    }
  }

  /// What ranks are set up with differently.
  void add_unequal_arguments(const Object& strategy) {
    for (const ObjectArgument& argument : strategy.arguments) {
      std::vector<int64_t> ranks;
      add_named_ranks(argument.value, ranks);
      if (!ranks.empty()) {
        add(argument.value.place, "trainer.strategy." + argument.name);
      }
    }
  }

  void add_unequal_layers(const std::vector<LayerSpec>& layers) {
    for (const LayerSpec& layer : layers) {
      if (!layer.frozen_on.empty()) {
        add(layer.frozen_on.front().place, "frozen_on");
      }
      add_unequal_layers(layer.layers);
      add_unequal_layers(layer.shortcut);
    }
  }

 private:
  Sites& sites_;
};

}  // namespace

void add_places_of_keys(const Scenario& scenario, Sites& sites) {
  Keys keys(sites);
  keys.add_given(scenario.model, "model");
  if (scenario.model) {
    keys.add_unequal_layers(scenario.model->layers);
  }
  if (scenario.data) {
    keys.add_data(*scenario.data);
  }
  if (scenario.trainer) {
    keys.add_trainer(*scenario.trainer);
  }
  for (const Object& optimizer : scenario.optimizers) {
    keys.add(optimizer.place, "optimizer");
  }
  for (const Object& scheduler : scenario.schedulers) {
    keys.add(scheduler.place, "lr_scheduler");
  }
  keys.add_given(scenario.launcher, "launcher");
  keys.add_given(scenario.cluster, "cluster");
  keys.add_given(scenario.process_group, "process_group");
  for (const FaultSpec& fault : scenario.faults) {
    keys.add(fault.place, fmt::format("fault {}", name_of(fault.kind)));
  }
}

}  // namespace lockstep::cli
