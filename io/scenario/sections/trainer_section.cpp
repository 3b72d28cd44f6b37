#include <fmt/format.h>

#include "io/scenario/forms/section_forms.hpp"
#include "io/scenario/names/spelling.hpp"
#include "io/scenario/sections/sections.hpp"
#include "io/scenario/sections/trainer_values.hpp"
#include "model/scenario/accumulation.hpp"
#include "model/trainer/framework/precision_choice.hpp"
#include "model/trainer/framework/trainer_arguments.hpp"

namespace lockstep {
namespace {

constexpr double forever = 1e15;

/// An int, or null as 0.
struct CountOrNullForm : FormWithoutWords {
  static constexpr std::string_view type = IntForm::type;
  static std::optional<int64_t> read(Reader& reader, const Node& node, const KeyRow& row) {
    return node.kind == Node::Kind::null ? std::optional<int64_t>(0)
                                         : IntForm::read(reader, node, row);
  }
};

/// Which of them a version, a strategy and a GPU take is decided where the trainer is built.
struct PrecisionForm : FormWithoutWords {
  static constexpr std::string_view type = TextForm::type;
  static std::optional<std::string> read(Reader& reader, const Node& node, const KeyRow& row) {
    auto name = TextForm::read(reader, node, row);
    const std::vector<std::string_view> legal = precision_spellings();
    if (name && std::find(legal.begin(), legal.end(), *name) == legal.end()) {
      reader.fail(node.mark, fmt::format("no version of Lightning has the precision `{}`", *name),
                  spelling_remedy(*name, legal));
      return std::nullopt;
    }
    return name;
  }
};

/// A number, or the variable from which the script takes it.
struct NodesForm : FormWithoutWords {
  static constexpr std::string_view type = "int, or `GROUP_WORLD_SIZE`";
  static std::optional<int64_t> read(Reader& reader, const Node& node, const KeyRow& row) {
    if (node.kind == Node::Kind::scalar && node.text == "GROUP_WORLD_SIZE") {
      return TrainerSpec::nodes_of_launcher;
    }
    return IntForm::read(reader, node, row);
  }
};

/// A number, or Lightning 1.x's map from an epoch to the number from there on.
struct AccumulationForm : FormWithoutWords {
  static constexpr std::string_view type = IntForm::type;
  static std::optional<int64_t> read(Reader& reader, const Node& node, const KeyRow& row) {
    return node.kind == Node::Kind::map ? accumulates_by_epoch : IntForm::read(reader, node, row);
  }
};

/// A bool, a logger, or a list of loggers.
struct LoggerForm : FormWithoutWords {
  static constexpr std::string_view type = AnyForm::type;
  static std::optional<PlainValue> read(Reader& reader, const Node& node, const KeyRow& row) {
    auto value = AnyForm::read(reader, node, row);
    if (value && !value->is_null() && value->get_if<bool>() == nullptr) {
      ObjectsForm<ObjectRole::logger>::read(reader, node, row);  // for what is wrong with it
    }
    return value;
  }
};

std::vector<Field<TrainerSpec>> duration_fields() {
  return {
      field<&TrainerSpec::max_epochs>(
          {"max_epochs", "1000 if nothing else ends it", "-1: no limit", -1, forever}),
      field<&TrainerSpec::min_epochs>({"min_epochs", "", "minimum", 0, forever}),
      field<&TrainerSpec::max_steps>(
          {"max_steps", "-1", "optimizer steps; -1: no limit", -1, forever}),
      field<&TrainerSpec::min_steps>({"min_steps", "", "minimum", 0, forever}),
      field<&TrainerSpec::max_time>({"max_time", "", "\"DD:HH:MM:SS\" or a map of timedelta"}),
      field<&TrainerSpec::limit_train_batches, BatchesForm>(
          {"limit_train_batches", "1.0", "int: batches; float: a part"}),
      field<&TrainerSpec::limit_val_batches, BatchesForm>(
          {"limit_val_batches", "1.0", "int: batches; float: a part"}),
      field<&TrainerSpec::limit_test_batches, BatchesForm>(
          {"limit_test_batches", "1.0", "int: batches; float: a part"}),
      field<&TrainerSpec::limit_predict_batches, BatchesForm>(
          {"limit_predict_batches", "1.0", "int: batches; float: a part"}),
      field<&TrainerSpec::overfit_batches, BatchesForm>(
          {"overfit_batches", "0.0",
           "train and validate on this number or part of the batches, always the same"}),
      field<&TrainerSpec::fast_dev_run, SwitchForm>(
          {"fast_dev_run", "false", "bool, or a number of batches"}),
      field<&TrainerSpec::val_check_interval, BatchesForm>(
          {"val_check_interval", "1.0", "int: batches; float: a part of the epoch"}),
      field<&TrainerSpec::check_val_every_n_epoch, CountOrNullForm>(
          {"check_val_every_n_epoch", "1", "null: count batches over epochs", 1, forever, true}),
      field<&TrainerSpec::num_sanity_val_steps>({"num_sanity_val_steps", "2",
                                                 "validation batches before training; -1: all", -1,
                                                 forever}),
      field<&TrainerSpec::log_every_n_steps>(
          {"log_every_n_steps", "50", "steps between two rows of the loggers", 0, forever}),
      field<&TrainerSpec::reload_dataloaders_every_n_epochs>(
          {"reload_dataloaders_every_n_epochs", "0", "make the loaders again so often; 0: never", 0,
           forever}),
  };
}

std::vector<Field<TrainerSpec>> device_fields() {
  return {
      field<&TrainerSpec::accelerator>({"accelerator", "auto", "`gpu`, `cpu`, `auto`, .."}),
      field<&TrainerSpec::strategy, ObjectForm<ObjectRole::strategy>>(
          {"strategy", "auto", "a class, or a name of Lightning's registry"}),
      field<&TrainerSpec::devices, DevicesForm>(
          {"devices", "auto", "int, text, list, or `{find_usable_cuda_devices: n}`"}),
      field<&TrainerSpec::gpus, DevicesForm>({"gpus", "", "as `devices`, in 1.x"}),
      field<&TrainerSpec::num_nodes, NodesForm>(
          {"num_nodes", "1", "machines; `GROUP_WORLD_SIZE`: as many as torchrun has started", 1,
           ranks_limit}),
      field<&TrainerSpec::num_processes>(
          {"num_processes", "", "processes on CPU, in 1.x", 1, ranks_limit}),
      field<&TrainerSpec::precision, PrecisionForm>(
          {"precision", "32-true",
           "number type: `32-true`, `64-true`, `16-mixed`, `bf16-mixed`, `16-true`, `bf16-true`; "
           "in 1.x 16, bf16, 32, 64"}),
      field<&TrainerSpec::accumulate_grad_batches, AccumulationForm>(
          {"accumulate_grad_batches", "1",
           "batches in one optimizer step; a map by epoch, as in 1.x, is exit 5", 1, forever}),
      field<&TrainerSpec::gradient_clip_val>({"gradient_clip_val", "", "largest norm or value", 0}),
      field<&TrainerSpec::gradient_clip_algorithm>(
          {"gradient_clip_algorithm", "norm", "`norm` or `value`"}),
      field<&TrainerSpec::use_distributed_sampler>(
          {"use_distributed_sampler", "true", "Lightning inserts a sampler"}),
      field<&TrainerSpec::replace_sampler_ddp>({"replace_sampler_ddp", "true", "the same, in 1.x"}),
      field<&TrainerSpec::sync_batchnorm>(
          {"sync_batchnorm", "false", "batch norms become SyncBatchNorm"}),
      field<&TrainerSpec::auto_select_gpus>(
          {"auto_select_gpus", "false", "1.x: try GPUs until enough are free"}),
      field<&TrainerSpec::deterministic, WarnForm>({"deterministic", "false", "bool, or `warn`"}),
      field<&TrainerSpec::benchmark>({"benchmark", "", "cudnn.benchmark"}),
      field<&TrainerSpec::inference_mode>(
          {"inference_mode", "true", "evaluate under inference_mode, not no_grad"}),
      field<&TrainerSpec::detect_anomaly>({"detect_anomaly", "false", "autograd's anomaly mode"}),
      field<&TrainerSpec::barebones>({"barebones", "false", "no logging, no callbacks"}),
      field<&TrainerSpec::amp_backend>({"amp_backend", "native", "1.x: `native` or `apex`"}),
      field<&TrainerSpec::amp_level>({"amp_level", "", "1.x: Apex level"}),
  };
}

std::vector<Field<TrainerSpec>> around_fields() {
  return {
      field<&TrainerSpec::callbacks, ObjectsForm<ObjectRole::callback>>(
          {"callbacks", "[]", "in the order in which they are called"}),
      field<&TrainerSpec::plugins, ObjectsForm<ObjectRole::plugin>>(
          {"plugins", "[]", "precision, cluster environment, checkpoint plugins"}),
      field<&TrainerSpec::logger, LoggerForm>(
          {"logger", "true", "bool, object or list of objects"}),
      field<&TrainerSpec::profiler, ObjectForm<ObjectRole::profiler>>(
          {"profiler", "", "a profiler, or its short name"}),
      field<&TrainerSpec::enable_checkpointing>(
          {"enable_checkpointing", "true", "adds a ModelCheckpoint if none is given"}),
      field<&TrainerSpec::enable_progress_bar>({"enable_progress_bar", "true", "a progress bar"}),
      field<&TrainerSpec::enable_model_summary>(
          {"enable_model_summary", "true", "a table of the layers"}),
      field<&TrainerSpec::default_root_dir, PathForm>(
          {"default_root_dir", "", "where logs and checkpoints go"}),
  };
}

/// Arguments that only some versions have, and what asks for nothing by its default.
std::vector<Field<TrainerSpec>> other_fields() {
  std::vector<Field<TrainerSpec>> fields;
  for (const TrainerArgument& argument : trainer_arguments()) {
    KeyRow row{argument.name, argument.default_text, argument.meaning};
    describe<AnyForm>(row, false);
    fields.push_back(
        {row, [](Reader& reader, const Node& node, const KeyRow& known, TrainerSpec& trainer) {
           if (auto value = AnyForm::read(reader, node, known)) {
             trainer.others.push_back(
                 {std::string(known.key), std::move(*value), reader.place(node)});
           }
         }});
  }
  return fields;
}

}  // namespace

Table<TrainerSpec> trainer_table() {
  Table<TrainerSpec> table{"trainer", device_fields()};
  for (const auto& part : {duration_fields(), around_fields(), other_fields()}) {
    table.fields.insert(table.fields.end(), part.begin(), part.end());
  }
  return table;
}

}  // namespace lockstep
