#include <fmt/format.h>

#include "io/scenario/forms/preset_form.hpp"
#include "io/scenario/forms/section_forms.hpp"
#include "io/scenario/sections/initial_form.hpp"
#include "io/scenario/sections/sections.hpp"
#include "model/network/presets.hpp"

namespace lockstep {
namespace {

struct LayersForm : FormWithoutWords {
  static constexpr std::string_view type = "list of layers";
  static std::optional<std::vector<LayerSpec>> read(Reader& reader, const Node& node,
                                                    const KeyRow&) {
    return read_layers(reader, node);
  }
};

struct ModulesForm : FormWithoutWords {
  static constexpr std::string_view type = "map NAME: model";
  static std::optional<std::vector<NamedModel>> read(Reader& reader, const Node& node,
                                                     const KeyRow& row) {
    if (node.kind != Node::Kind::map) {
      reader.fail_type(node, row.key, "a map", "write {generator: {..}, discriminator: {..}}");
      return std::nullopt;
    }
    std::vector<NamedModel> modules;
    for (const Entry& entry : node.entries) {
      if (entry.value->kind == Node::Kind::null) {
        continue;
      }
      if (auto model = read_model(reader, *entry.value)) {
        modules.push_back({entry.key, std::move(*model)});
      }
    }
    return modules;
  }
};

/// One shape argument of a preset.
template <class Form>
Field<ModelSpec> shape_field(KeyRow row) {
  describe<Form>(row, false);
  return {row, [](Reader& reader, const Node& node, const KeyRow& known, ModelSpec& model) {
            if (const auto value = Form::read(reader, node, known)) {
              model.shape.push_back({std::string(known.key), PlainValue{*value, reader.place(node)},
                                     reader.place(node)});
            }
          }};
}

std::vector<Field<ModelSpec>> shape_fields() {
  return {
      shape_field<IntForm>({"seq_len", "preset's", "tokens of one sample", 1, 1e12}),
      shape_field<IntForm>({"target_len", "preset's", "tokens of the decoder's sample", 1, 1e12}),
      shape_field<IntForm>({"vocab_size", "preset's", "size of the vocabulary", 1, 1e12}),
      shape_field<FloatForm>({"dropout", "preset's", "probability", 0, 1}),
      shape_field<FloatForm>({"stochastic_depth", "preset's",
                              "probability with which the last block is skipped", 0, 1}),
      shape_field<IntForm>({"image_size", "preset's", "pixels of one edge", 1, 1e6}),
      shape_field<IntForm>({"num_classes", "preset's", "classes of the last layer", 1, 1e12}),
      shape_field<IntForm>({"in_features", "preset's", "of the first layer", 1, 1e12}),
      shape_field<IntForm>({"hidden_size", "preset's", "width of the hidden layers", 1, 1e12}),
  };
}

/// A preset must take the shape arguments beside it.
void check_preset(Reader& reader, const Node& node, const ModelSpec& model) {
  if (!model.preset) {
    return;
  }
  for (const NetworkPreset& preset : network_presets()) {
    if (preset.name != model.preset->value) {
      continue;
    }
    for (const ObjectArgument& argument : model.shape) {
      const auto& legal = preset.arguments;
      if (std::find(legal.begin(), legal.end(), argument.name) == legal.end()) {
        reader.fail(node.find(argument.name)->mark,
                    fmt::format("the preset `{}` has no `{}`", preset.name, argument.name),
                    spelling_remedy(argument.name, legal));
      }
    }
  }
}

void check_one_source(Reader& reader, const Node& node) {
  const std::vector<std::string_view> sources = {"preset", "hf", "layers", "modules"};
  const Entry* first = nullptr;
  for (const Entry& entry : node.entries) {
    const bool source = std::find(sources.begin(), sources.end(), entry.key) != sources.end();
    if (!source || (entry.value->kind == Node::Kind::null && !entry.value->faulty)) {
      continue;
    }
    if (first != nullptr) {
      reader.fail(entry.mark,
                  fmt::format("a model has `{}` or `{}`, not both", first->key, entry.key),
                  "keep one of preset, hf, layers, modules");
      return;
    }
    first = &entry;
  }
  // What says nothing of the architecture leaves the default model as it is.
  const bool keeps_default = std::ranges::all_of(node.entries, [](const Entry& entry) {
    return entry.key == "unpicklable" || entry.key == "compile" || entry.key == "memory_format";
  });
  if (first == nullptr && !(keeps_default && !node.entries.empty())) {
    reader.fail(node.mark, "a model needs one of `preset`, `hf`, `layers`, `modules`",
                "write {preset: gpt2}");
  }
}

}  // namespace

Table<ModelSpec> model_table() {
  Table<ModelSpec> table{
      "model",
      {
          field<&ModelSpec::preset, NetworkPresetForm>(
              {"preset", "", "a model of `lockstep explain presets`"}),
          field<&ModelSpec::hf, PathForm>({"hf", "", "path of a config.json"}),
          field<&ModelSpec::layers, LayersForm>({"layers", "", "torch.nn modules, in order"}),
          field<&ModelSpec::modules, ModulesForm>(
              in_table({"modules", "", "several models by name, as `self.NAME`"}, "model")),
          field<&ModelSpec::input>(
              {"input", "from the first layer", "shape of one sample", 1, 1e12}),
          field<&ModelSpec::input_dtype, DTypeNameForm>(
              {"input_dtype", "fp32, int64 before an Embedding", "of one sample"}),
          field<&ModelSpec::loss, ObjectForm<ObjectRole::loss>>(
              {"loss", "CrossEntropyLoss", "of output and target"}),
          field<&ModelSpec::loss_in>(
              {"loss_in", "training_step",
               "dp and ddp2: `training_step_end` computes the loss of the outputs of all devices"}),
          field<&ModelSpec::activation_checkpointing>(
              {"activation_checkpointing", "none", "what to recompute in backward"}),
          field<&ModelSpec::compile>({"compile", "false", "torch.compile"}),
          field<&ModelSpec::attention>({"attention", "flash", "which attention kernel"}),
          field<&ModelSpec::memory_format>(
              {"memory_format", "contiguous",
               "of images: `model.to(memory_format=torch.channels_last)`; priced by "
               "`versions.kernels`"}),
          field<&ModelSpec::unpicklable>(
              {"unpicklable", "[]", "attributes that cannot be pickled"}),
          field<&ModelSpec::initial, InitialForm>(
              {"initial", "drawn from the seed",
               "values of parameters and buffers by their names in torch's state_dict"}),
      }};
  const auto shapes = shape_fields();
  table.fields.insert(table.fields.end(), shapes.begin(), shapes.end());
  return table;
}

std::optional<ModelSpec> read_model(Reader& reader, const Node& node) {
  if (node.kind != Node::Kind::map) {
    reader.fail_type(node, "model", "a map", "write {preset: gpt2}");
    return std::nullopt;
  }
  ModelSpec model;
  model.place = reader.place(node);
  read_table(reader, node, model_table(), model);
  check_one_source(reader, node);
  check_preset(reader, node, model);
  return model;
}

}  // namespace lockstep
