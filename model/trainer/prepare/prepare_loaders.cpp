// The data loaders.
#include <fmt/core.h>

#include <algorithm>

#include "model/cluster/presets.hpp"
#include "model/scenario/defaults.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

bool is_written(const SourcePlace& place) { return place.line > 0; }

int64_t samples_of(Preparation& preparation, const LoaderSpec& spec, const Network& network) {
  if (!spec.tokens) {
    return value_or(spec.samples, int64_t{0});
  }
  if (network.input.size() != 1) {
    add_problem(preparation, Kind::invalid, spec.tokens->place,
                "`tokens` needs a model whose samples are sequences", "give `samples`");
    return 0;
  }
  return spec.tokens->value / network.input.front();
}

void check_columns(Preparation& preparation, const LoaderSettings& settings) {
  for (const SampleColumns::Entry& entry : settings.columns->entries()) {
    const auto items = static_cast<int64_t>(entry.items.size());
    if (items > 0 && items < settings.samples) {
      add_problem(preparation, Kind::invalid, entry.expression.place(),
                  fmt::format("the column `{}` has {} entries for {} samples", entry.name, items,
                              settings.samples),
                  "give one entry per sample");
    }
  }
}

double cores_of_rank(const Preparation& preparation) {
  const std::optional<ClusterSpec>& cluster = preparation.scenario->cluster;
  const std::string assumed = assumed_cluster(*preparation.scenario);
  const std::string name = cluster ? value_or(cluster->preset, assumed) : assumed;
  const std::optional<Cluster> preset = cluster_preset(name);
  int64_t cores = preset ? preset->node.cpu_cores : 1;
  if (cluster) {
    cores = value_or(cluster->cpu_cores, cores);
  }
  return static_cast<double>(cores) / std::max(1, preparation.options.ranks_per_node);
}

// torch warns of more workers than a process has cores; ranks of one node share them.
void note_idle_workers(Preparation& preparation, const LoaderSpec& spec,
                       const LoaderSettings& settings) {
  if (settings.sample_time > Time{} && spec.num_workers && is_written(spec.num_workers->place) &&
      static_cast<double>(settings.workers) > settings.cores) {
    add_problem(preparation, Kind::note, spec.num_workers->place,
                fmt::format("{} workers per rank have {:.3g} CPU cores: more workers than cores do "
                            "not load faster",
                            settings.workers, settings.cores),
                fmt::format("use at most {}, or set cluster.cpu_cores",
                            std::max<int64_t>(1, static_cast<int64_t>(settings.cores))));
  }
}

LoaderSettings loader_of(Preparation& preparation, const LoaderSpec& spec,
                         const TrainingProgram& program) {
  LoaderSettings settings;
  settings.place = spec.place;
  preparation.sites.add(site_at(spec.place, "the loader"));
  settings.samples = samples_of(preparation, spec, *program.network);
  if (spec.batches) {
    settings.batches = spec.batches->value;
  }
  settings.batch_size = value_or(spec.batch_size, int64_t{8});
  if (spec.batch_size_of_rank) {
    settings.batch_size_of_rank = spec.batch_size_of_rank->value;
    preparation.sites.add(site_at(spec.batch_size_of_rank->place, "`batch_size` of the loader"));
  }
  settings.shuffle = value_or(spec.shuffle, false);
  settings.drop_last = value_or(spec.drop_last, false);
  settings.iterable = value_or(spec.iterable, false);
  settings.sampler = value_or(spec.sampler, SamplerKind::automatic);
  settings.sampler_drop_last = value_or(spec.sampler_drop_last, false);
  settings.set_epoch = value_or(spec.set_epoch, true);
  settings.sample_time = value_or(spec.sample_time, Time{});
  settings.workers = value_or(spec.num_workers, int64_t{0});
  settings.cores = cores_of_rank(preparation);
  note_idle_workers(preparation, spec, settings);
  settings.prefetch_factor = std::max<int64_t>(1, value_or(spec.prefetch_factor, int64_t{2}));
  const bool written = spec.values && is_written(spec.values->place);
  settings.columns =
      std::make_shared<const SampleColumns>(spec.values, program.settings.seed, written);
  if (settings.batch_size < 1) {
    add_problem(preparation, Kind::invalid, spec.batch_size->place, "`batch_size` is at least 1");
    settings.batch_size = 1;
  }
  check_columns(preparation, settings);
  settings.given = prepare_samples(preparation, spec, settings, *program.network);
  if (settings.shuffle && settings.samples == 0 && !settings.batches && !settings.iterable &&
      spec.samples && is_written(spec.samples->place)) {
    // torch/utils/data/sampler.py, RandomSampler: made by the DataLoader itself
    add_problem(preparation, Kind::refused, spec.samples->place,
                "num_samples should be a positive integer value, but got num_samples=0",
                "give samples, or shuffle: false", refused_code);
  }
  if (spec.sample_size && is_written(spec.sample_size->place)) {
    add_problem(preparation, Kind::unsupported, spec.sample_size->place,
                "`sample_size` is not modelled yet: batches have the size of the model's input");
  }
  if (settings.sampler_drop_last && settings.sampler != SamplerKind::distributed) {
    add_problem(preparation, Kind::invalid, spec.sampler_drop_last->place,
                "`sampler_drop_last` belongs to a DistributedSampler of your own",
                "write `sampler: distributed` beside it; the sampler that Lightning inserts drops "
                "nothing");
  }
  for (const Given<bool>* key : {&spec.pin_memory, &spec.persistent_workers}) {
    if (*key && is_written((*key)->place)) {
      add_problem(preparation, Kind::note, (*key)->place,
                  key == &spec.pin_memory ? "`pin_memory` has no effect here"
                                          : "`persistent_workers` has no effect here");
    }
  }
  return settings;
}

// The place that says how many batches there are, for ranks that have unequal numbers of them.
SiteId add_batches_site(Preparation& preparation, const LoaderSpec& spec, const char* stage) {
  Site site = site_at(spec.batches ? spec.batches->place : spec.place,
                      spec.batches ? "`batches` of the loader" : "the loader");
  site.part = fmt::format("batches of {}", stage);
  site.batches = stage;
  site.condition = spec.batches ? spec.batches->value.text() : "";
  return preparation.sites.add(site);
}

// Lightning runs a stage whose step the user has written; here loaders that are written count too.
bool is_used(const Scenario& scenario, const std::vector<LoaderSpec>& specs, const char* step) {
  return (scenario.program && scenario.program->find(step) != nullptr) ||
         (!specs.empty() && is_written(specs.front().place));
}

// trainer/configuration_validator.py: `validate` and `test` need a step of the user's.
void check_step(Preparation& preparation, StatementKind kind, const char* name,
                const std::vector<LoaderSettings>& loaders) {
  const auto& program = preparation.scenario->program;
  const Statement* statement = program ? find_statement(*program, kind) : nullptr;
  if (statement != nullptr && loaders.empty()) {
    const std::string step = kind == StatementKind::validate ? "validation_step" : "test_step";
    add_problem(preparation, Kind::refused, statement->place,
                fmt::format("No `{}()` method defined to run `Trainer.{}`", step, name),
                fmt::format("write it: program: {{{}: [..]}}", step), refused_code);
  }
}

// data_connector.py, _resolve_overfit_batches: unless all loaders of a stage are in order, their
// samplers are replaced by sequential ones, a DistributedSampler of the script's own, too. What
// Lightning then inserts does not shuffle in any stage (_get_distributed_sampler).
void put_in_order(Preparation& preparation, TrainingProgram& program) {
  for (auto* loaders : {&program.train, &program.validation, &program.test, &program.predict}) {
    for (LoaderSettings& loader : *loaders) {
      loader.in_order = true;
    }
  }
  for (auto* loaders : {&program.train, &program.validation}) {
    for (LoaderSettings& loader : *loaders) {
      if (loader.iterable) {
        continue;
      }
      if (loader.sampler != SamplerKind::automatic && !program.trainer.inject_sampler) {
        add_problem(preparation, Kind::warning, loader.place,
                    "`overfit_batches` replaces the sampler of this loader by a sequential one: "
                    "every rank gets the same batches",
                    "leave out `use_distributed_sampler: false` while overfitting", ignored_code);
      }
      loader.shuffle = false;
      loader.sampler = SamplerKind::automatic;
      loader.sampler_drop_last = false;
    }
  }
}

}  // namespace

void prepare_loaders(Preparation& preparation, TrainingProgram& program) {
  const Scenario& scenario = *preparation.scenario;
  ensure(scenario.data && !scenario.data->train.empty(), "defaults give a training loader");
  const DataSpec& data = *scenario.data;
  if (data.train.size() > 1) {
    add_problem(preparation, Kind::unsupported, data.train[1].place,
                "several training loaders are not modelled yet");
  }
  program.train.push_back(loader_of(preparation, data.train.front(), program));
  program.train.back().batches_site = add_batches_site(preparation, data.train.front(), "training");
  const auto read = [&](const std::vector<LoaderSpec>& specs, const std::string& stage,
                        std::vector<LoaderSettings>& loaders) {
    if (is_used(scenario, specs, (stage + "_step").c_str())) {
      for (const LoaderSpec& spec : specs) {
        loaders.push_back(loader_of(preparation, spec, program));
        loaders.back().batches_site = add_batches_site(preparation, spec, stage.c_str());
      }
    }
  };
  read(data.val, "validation", program.validation);
  read(data.test, "test", program.test);
  read(data.predict, "predict", program.predict);
  if (program.predict.empty() && scenario.program &&
      find_statement(*scenario.program, StatementKind::predict) != nullptr) {
    program.predict.push_back(loader_of(preparation, data.predict.front(), program));
  }
  if (overfits(*scenario.trainer)) {
    put_in_order(preparation, program);
  }
  check_step(preparation, StatementKind::validate, "validate", program.validation);
  check_step(preparation, StatementKind::test, "test", program.test);
}

}  // namespace lockstep
