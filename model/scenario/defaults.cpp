#include "model/scenario/defaults.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "model/cluster/presets.hpp"
#include "model/scenario/expressions_of.hpp"

namespace lockstep {
namespace {

/// Collects what is filled; `file` becomes the place of defaults.
class Filler {
 public:
  Filler(Scenario& scenario, std::vector<std::string>& assumptions)
      : scenario_(scenario), assumptions_(assumptions), nowhere_{scenario.file, 0, 0} {}

  void run() {
    fill(scenario_.seed, int64_t{0});
    fill_cluster();
    fill_process_group();
    if (scenario_.is_bare_program()) {
      return;
    }
    fill_launcher();
    fill_model();
    fill_data();
    fill_optimizer();
    if (!scenario_.trainer) {
      scenario_.trainer.emplace();
      scenario_.trainer->place = nowhere_;
    }
    if (!scenario_.verify) {
      scenario_.verify.emplace();
      scenario_.verify->place = nowhere_;
    }
    fill_verify();
  }

 private:
  template <class T, class Default>
  void fill(Given<T>& member, Default value) {
    if (!member) {
      member = Placed<T>{T(std::move(value)), nowhere_};
    }
  }
  template <class T>
  static void inherit(Given<T>& member, const Given<T>& common) {
    if (!member) {
      member = common;
    }
  }
  void assume(std::string line) { assumptions_.push_back(std::move(line)); }

  bool on_cpu() const {
    return scenario_.trainer && scenario_.trainer->accelerator &&
           scenario_.trainer->accelerator->value == "cpu";
  }

  void fill_cluster() {
    if (!scenario_.cluster) {
      scenario_.cluster.emplace();
      scenario_.cluster->place = nowhere_;
    }
    ClusterSpec& cluster = *scenario_.cluster;
    if (cluster.ranks) {
      // A bare program on nothing but a network needs no machine.
      const bool only_network = !cluster.preset && !cluster.gpu && !cluster.nvlink;
      const bool plain = !cluster.collectives ||
                         cluster.collectives->value == CollectiveModel::ring ||
                         cluster.collectives->value == CollectiveModel::tree;
      if (only_network && cluster.network && plain) {
        if (!cluster.collectives) {
          fill(cluster.collectives, CollectiveModel::ring);
          assume("cluster: collectives cost as rings of plain latency and bandwidth");
        }
        return;
      }
    }
    const bool described = cluster.nccl_xml || cluster.nvidia_smi;
    if (!cluster.preset && !described) {
      fill(cluster.preset, on_cpu() ? std::string("cpu") : assumed_cluster(scenario_));
      assume(fmt::format("cluster: one {} per node", cluster.preset->value));
    }
    if (!cluster.nodes && !cluster.ranks) {
      const bool given = scenario_.trainer && scenario_.trainer->num_nodes;
      fill(cluster.nodes, given ? scenario_.trainer->num_nodes->value : int64_t{1});
    }
    if (cluster.network) {
      fill(cluster.network->oversubscription, 1.0);
    }
  }

  void fill_process_group() {
    if (!scenario_.process_group) {
      scenario_.process_group.emplace();
      scenario_.process_group->place = nowhere_;
    }
    ProcessGroupSpec& group = *scenario_.process_group;
    if (!group.backend) {
      const bool gloo =
          on_cpu() || (scenario_.cluster->collectives &&
                       scenario_.cluster->collectives->value == CollectiveModel::gloo);
      fill(group.backend, gloo ? ProcessGroupBackend::gloo : ProcessGroupBackend::nccl);
    }
    const bool nccl = group.backend->value == ProcessGroupBackend::nccl;
    if (nccl) {
      fill(group.eager_limit, 0_B);
    }
  }

  void fill_launcher() {
    if (!scenario_.launcher) {
      scenario_.launcher = Object{"lightning", {}, nowhere_};
    }
  }

  void fill_model() {
    if (!scenario_.model) {
      scenario_.model.emplace();
      scenario_.model->place = nowhere_;
    }
    ModelSpec& model = *scenario_.model;
    if (!model.preset && !model.hf && model.layers.empty() && model.modules.empty()) {
      fill(model.preset, "mlp");
      assume("model: a two-layer perceptron 32-64-2");
    }
    fill_model_keys(*scenario_.model);
  }

  void fill_model_keys(ModelSpec& model) {
    for (NamedModel& module : model.modules) {
      fill_model_keys(module.model);
    }
    if (!model.loss) {
      model.loss = Object{"CrossEntropyLoss", {}, nowhere_};
    }
    fill(model.activation_checkpointing, ActivationCheckpointing::none);
    fill(model.compile, false);
    fill(model.attention, AttentionKind::flash);
    fill(model.memory_format, MemoryFormat::contiguous);
  }

  // Lightning has a predict_step of its own.
  bool predicts() const {
    return scenario_.program && find_statement(*scenario_.program, StatementKind::predict);
  }

  void fill_data() {
    if (!scenario_.data) {
      scenario_.data.emplace();
      scenario_.data->place = nowhere_;
    }
    DataSpec& data = *scenario_.data;
    struct Stage {
      std::string_view name;
      std::string_view step;
      std::vector<LoaderSpec>& loaders;
    };
    for (const auto& [name, step, loaders] :
         {Stage{"train", "training_step", data.train}, Stage{"val", "validation_step", data.val},
          Stage{"test", "test_step", data.test}, Stage{"predict", "predict_step", data.predict}}) {
      const bool train = &loaders == &data.train;
      // Lightning leaves a stage out whose step the user has not written.
      const bool has_step = scenario_.program && scenario_.program->find(step) != nullptr;
      const bool used = train || has_step || (&loaders == &data.predict && predicts());
      if (loaders.empty()) {
        loaders.emplace_back().place = nowhere_;
      }
      for (LoaderSpec& loader : loaders) {
        inherit_loader(loader, data.common);
        count_rows(loader);
        if (!loader.samples && !loader.tokens && !loader.batches) {
          fill(loader.samples, train ? int64_t{1024} : int64_t{256});
          if (used) {
            assume(fmt::format("data.{}: {} samples", name, loader.samples->value));
          }
        }
        fill_loader(loader, train);
      }
    }
  }

  static void inherit_loader(LoaderSpec& loader, const LoaderSpec& common) {
    // How much data there is, is said in one of three ways: a loader's own way wins.
    if (!loader.samples && !loader.tokens && !loader.batches) {
      loader.samples = common.samples;
      loader.tokens = common.tokens;
      loader.batches = common.batches;
    }
    if (!loader.batch_size && !loader.batch_size_of_rank) {
      loader.batch_size = common.batch_size;
      loader.batch_size_of_rank = common.batch_size_of_rank;
    }
    inherit(loader.shuffle, common.shuffle);
    inherit(loader.drop_last, common.drop_last);
    inherit(loader.pin_memory, common.pin_memory);
    inherit(loader.persistent_workers, common.persistent_workers);
    inherit(loader.num_workers, common.num_workers);
    inherit(loader.prefetch_factor, common.prefetch_factor);
    inherit(loader.iterable, common.iterable);
    inherit(loader.sampler, common.sampler);
    inherit(loader.sampler_drop_last, common.sampler_drop_last);
    inherit(loader.set_epoch, common.set_epoch);
    inherit(loader.sample_time, common.sample_time);
    inherit(loader.sample_size, common.sample_size);
    if (!loader.inputs) {
      loader.inputs = common.inputs;
    }
    if (!loader.targets) {
      loader.targets = common.targets;
    }
    if (!loader.values) {
      loader.values = common.values;
    }
  }

  // Samples that are written down are as many as there are rows.
  void count_rows(LoaderSpec& loader) const {
    for (const std::optional<TensorValues>* rows : {&loader.inputs, &loader.targets}) {
      if (*rows && (*rows)->numbers && !loader.samples && !loader.tokens && !loader.batches) {
        loader.samples = Placed<int64_t>{(*rows)->shape.front(), nowhere_};
      }
    }
  }

  void fill_loader(LoaderSpec& loader, bool train) {
    if (!loader.batch_size_of_rank) {
      fill(loader.batch_size, int64_t{8});
    }
    fill(loader.shuffle, train);
    fill(loader.drop_last, false);
    fill(loader.pin_memory, false);
    fill(loader.persistent_workers, false);
    fill(loader.num_workers, int64_t{0});
    fill(loader.prefetch_factor, int64_t{2});
    fill(loader.iterable, false);
    fill(loader.sampler, SamplerKind::automatic);
    fill(loader.sampler_drop_last, false);
    fill(loader.set_epoch, true);
    fill(loader.sample_time, Time());
    if (!loader.values) {
      loader.values = default_values();
    }
  }

  ColumnValues default_values() const {
    // Draws of one place are equal, so each column has a place of its own.
    int column = 0;
    const auto call_random = [&] {
      ExpressionNode node{ExpressionNode::Kind::call, {scenario_.file, 0, ++column}};
      node.name = "random";
      return make_expression_node(std::move(node));
    };
    ExpressionNode half{ExpressionNode::Kind::constant, nowhere_};
    half.value = Value(0.5);
    ExpressionNode below{ExpressionNode::Kind::binary, nowhere_};
    below.operation = Operator::less;
    below.parts = {call_random(), make_expression_node(std::move(half))};
    ColumnValues values;
    values.place = nowhere_;
    values.columns = {
        {"score", Expression(call_random(), "random()"), nowhere_},
        {"target", Expression(make_expression_node(std::move(below)), "random() < 0.5"), nowhere_},
        {"loss", Expression(call_random(), "random()"), nowhere_}};
    return values;
  }

  void fill_optimizer() {
    if (scenario_.optimizers.empty()) {
      scenario_.optimizers.push_back(
          Object{"SGD", {{"lr", PlainValue{0.1, nowhere_}, nowhere_}}, nowhere_});
      assume("optimizer: SGD with lr 0.1");
    }
  }

  void fill_verify() {
    fill(scenario_.verify->max_schedules, int64_t{10'000});
    fill(scenario_.verify->all_steps, false);
    fill(scenario_.verify->all_ranks, false);
    fill(scenario_.verify->numerics, "auto");
    fill(scenario_.verify->single_device, true);
  }

  Scenario& scenario_;
  std::vector<std::string>& assumptions_;
  SourcePlace nowhere_;
};

}  // namespace

std::string assumed_cluster(const Scenario& scenario) {
  const bool names_gpu = scenario.cluster && scenario.cluster->gpu && scenario.cluster->gpu->preset;
  const std::string device = names_gpu ? scenario.cluster->gpu->preset->value : "";
  return std::string(device_preset(device) ? usual_cluster_of(device) : "dgx-h100");
}

ResolvedScenario with_defaults(Scenario scenario) {
  ResolvedScenario resolved{std::move(scenario), {}};
  Filler(resolved.scenario, resolved.assumptions).run();
  return resolved;
}

}  // namespace lockstep
