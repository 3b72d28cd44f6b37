// From the `model` section to a network.
#include <fmt/core.h>

#include <iterator>
#include <set>
#include <variant>

#include "model/network/accounting.hpp"
#include "model/network/checkpointing.hpp"
#include "model/network/config_networks.hpp"
#include "model/network/modules.hpp"
#include "model/network/presets.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/trainer/prepare/configured_sizes.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

class NetworkReader {
 public:
  NetworkReader(Preparation& preparation, const std::vector<std::string>& checkpointed)
      : preparation_(preparation), checkpointed_(checkpointed) {}
  std::optional<NetworkDescription> describe(const ModelSpec& model);

 private:
  LayerDescription layer(const LayerSpec& spec);
  std::vector<LayerDescription> layers(const std::vector<LayerSpec>& specs);
  std::vector<NamedArgument> arguments(const std::vector<ObjectArgument>& given);
  void add_cost(const LayerCost& cost, LayerDescription& description) const;
  std::optional<NetworkDescription> describe_named(const ModelSpec& model);
  std::optional<NetworkDescription> describe_configured(const ModelSpec& model);
  void find_unsupported_keys(const ModelSpec& model);
  void mark_segments(const ModelSpec& model, NetworkDescription& description);
  void mark_segments_of_strategy(NetworkDescription& description);

  Preparation& preparation_;
  const std::vector<std::string>& checkpointed_;
};

std::optional<Argument> argument_value(const PlainValue& value) {
  if (const bool* truth = value.get_if<bool>()) {
    return *truth;
  }
  if (const int64_t* whole = value.get_if<int64_t>()) {
    return *whole;
  }
  if (const double* number = value.get_if<double>()) {
    return *number;
  }
  if (const std::string* text = value.get_if<std::string>()) {
    return *text;
  }
  const PlainValue::List* list = value.get_if<PlainValue::List>();
  if (list == nullptr) {
    return std::nullopt;
  }
  std::vector<int64_t> numbers;
  for (const PlainValue& item : *list) {
    const int64_t* number = item.get_if<int64_t>();
    if (number == nullptr) {
      return std::nullopt;
    }
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<NamedArgument> NetworkReader::arguments(const std::vector<ObjectArgument>& given) {
  std::vector<NamedArgument> named;
  for (const ObjectArgument& argument : given) {
    if (argument.value.is_null()) {
      continue;  // torch's default
    }
    std::optional<Argument> value = argument_value(argument.value);
    if (!value) {
      add_problem(preparation_, Kind::invalid, argument.place,
                  fmt::format("`{}` cannot be {}", argument.name, text_of(argument.value)));
      continue;
    }
    named.push_back({argument.name, std::move(*value)});
  }
  return named;
}

void NetworkReader::add_cost(const LayerCost& cost, LayerDescription& description) const {
  description.kind = "Cost";
  if (cost.parameters) {
    description.arguments.push_back({"parameters", cost.parameters->value});
  }
  if (cost.forward) {
    description.arguments.push_back({"forward", cost.forward->value});
  }
  if (cost.backward) {
    description.arguments.push_back({"backward", cost.backward->value});
  }
  if (cost.activation) {
    description.arguments.push_back({"activation", cost.activation->value});
  }
}

std::string word_of(LayerCheckpoint checkpoint) {
  switch (checkpoint) {
    case LayerCheckpoint::none: return "false";
    case LayerCheckpoint::torch: return "torch";
    case LayerCheckpoint::fairscale: return "fairscale";
  }
  return "";
}

LayerDescription NetworkReader::layer(const LayerSpec& spec) {
  LayerDescription description;
  description.source = spec.place;
  switch (spec.kind) {
    case LayerSpec::Kind::module:
      description.kind = spec.object.name;
      description.arguments = arguments(spec.object.arguments);
      break;
    case LayerSpec::Kind::sequential: description.kind = "Sequential"; break;
    case LayerSpec::Kind::residual: description.kind = "Residual"; break;
    case LayerSpec::Kind::concatenate: description.kind = "Concatenate"; break;
    case LayerSpec::Kind::multiply: description.kind = "Multiply"; break;
    case LayerSpec::Kind::aside:
      description.kind = "Aside";
      description.arguments = arguments(spec.object.arguments);
      break;
    case LayerSpec::Kind::repeat:
      description.kind = "repeat";
      description.arguments.push_back({"times", spec.times});
      break;
    case LayerSpec::Kind::cost: add_cost(spec.cost, description); break;
  }
  if (spec.name) {
    description.arguments.push_back({"name", spec.name->value});
  }
  if (spec.checkpoint) {
    description.arguments.push_back({"checkpoint", word_of(spec.checkpoint->value)});
  }
  if (spec.trainable) {
    description.arguments.push_back({"trainable", spec.trainable->value});
  }
  if (spec.device && spec.device->place.line > 0) {
    add_problem(preparation_, Problem::Kind::note, spec.device->place,
                fmt::format("`device` of a layer has no effect here: {} puts all layers on the "
                            "rank's own device",
                            preparation_.placement.strategy.name),
                "remove it, or move data with {copy: {tensor: NAME, to: gpu 1}}");
  }
  if (spec.device) {
    description.arguments.push_back({"device", spec.device->value});
  }
  description.initial = spec.initial;
  description.layers = layers(spec.layers);
  description.shortcut = layers(spec.shortcut);
  return description;
}

std::vector<LayerDescription> NetworkReader::layers(const std::vector<LayerSpec>& specs) {
  std::vector<LayerDescription> descriptions;
  for (const LayerSpec& spec : specs) {
    descriptions.push_back(layer(spec));
  }
  return descriptions;
}

void NetworkReader::find_unsupported_keys(const ModelSpec& model) {
  const auto unsupported = [&](const SourcePlace& place, const char* what) {
    add_problem(preparation_, Kind::unsupported, place,
                fmt::format("{} is not modelled yet", what));
  };
  for (const NamedModel& module : model.modules) {
    unsupported(module.model.place, "`modules` inside of one of them");
  }
  if (model.compile && model.compile->value) {
    unsupported(model.compile->place, "`compile`");
  }
}

void NetworkReader::mark_segments(const ModelSpec& model, NetworkDescription& description) {
  if (!model.activation_checkpointing ||
      model.activation_checkpointing->value == ActivationCheckpointing::none) {
    return;
  }
  const auto& asked = *model.activation_checkpointing;
  const auto note = [&](const char* what) {
    add_problem(preparation_, Kind::note, asked.place, what);
  };
  if (asked.value == ActivationCheckpointing::full) {
    if (checkpoint_blocks(description.layers) == 0) {
      note(
          "`activation_checkpointing: full` has no effect: the model has no repeated block; "
          "mark layers with `checkpoint: true`");
    }
  } else if (checkpoint_attention(description.layers) == 0) {
    note("`activation_checkpointing: selective` has no effect: the model has no attention");
  }
}

// After the model's own, beside which Lightning's _setup_activation_checkpointing does nothing.
void NetworkReader::mark_segments_of_strategy(NetworkDescription& description) {
  if (checkpointed_.empty()) {
    return;
  }
  const SourcePlace& place = preparation_.scenario->trainer->strategy->place;
  if (has_checkpoints(description.layers)) {
    add_problem(preparation_, Kind::note, place,
                "FSDP checkpointing is configured, but the model already contains checkpointed "
                "layers. Checkpointing will be ignored.");
  } else if (checkpointed_ == std::vector<std::string>{"blocks"}) {
    checkpoint_blocks(description.layers);
  } else if (checkpoint_classes(description.layers, checkpointed_).has_nested) {
    add_problem(preparation_, Kind::unsupported, place,
                "a checkpointed module inside of another one is not modelled yet",
                "name classes of which none contains another");
  }
}

std::optional<NetworkDescription> NetworkReader::describe_named(const ModelSpec& model) {
  std::vector<NamedArgument> shape = arguments(model.shape);
  for (NamedArgument& argument : shape) {
    argument.name = argument.name == "hidden_features" ? "hidden_size"
                    : argument.name == "out_features"  ? "num_classes"
                                                       : argument.name;
  }
  auto described = describe_preset(model.preset->value, shape);
  if (const PresetAnswer answer = find_network_name(model.preset->value);
      answer.verdict == PresetAnswer::Verdict::not_modelled) {
    add_problem(preparation_, Kind::unsupported, model.preset->place,
                fmt::format("the model `{}` exists and is not modelled yet", model.preset->value),
                fmt::format("use `{}`, the nearest one, or describe its `layers`", answer.name));
    return std::nullopt;
  }
  if (const auto* error = std::get_if<NetworkError>(&described)) {
    add_problem(preparation_, Kind::invalid, model.preset->place, error->message, error->remedy);
    return std::nullopt;
  }
  return std::get<NetworkDescription>(std::move(described));
}

/// Keys with plain values; what else a configuration holds says nothing of the network, but for
/// the number of its labels, and that it scales its rotary embedding.
std::vector<NamedArgument> plain_keys(const std::vector<ObjectArgument>& config) {
  std::vector<NamedArgument> keys;
  for (const ObjectArgument& key : config) {
    const auto* map = key.value.get_if<PlainValue::Map>();
    if (map != nullptr && (key.name == "id2label" || key.name == "rope_scaling")) {
      keys.push_back({key.name, static_cast<int64_t>(map->size())});
    } else if (auto value = argument_value(key.value)) {
      keys.push_back({key.name, std::move(*value)});
    }
  }
  return keys;
}

std::optional<NetworkDescription> NetworkReader::describe_configured(const ModelSpec& model) {
  const ConfiguredSizes sizes = configured_sizes(arguments(model.shape));
  if (!sizes.strange.empty()) {
    add_problem(
        preparation_, Kind::invalid, model.hf->place,
        fmt::format("`{}` cannot stand beside `hf`", sizes.strange),
        "change it in config.json; seq_len, target_len, dropout and num_classes can be given "
        "here");
    return std::nullopt;
  }
  auto described = describe_config(plain_keys(model.config), sizes.size);
  if (const auto* error = std::get_if<NetworkError>(&described)) {
    add_problem(preparation_, error->is_unmodelled ? Kind::unsupported : Kind::invalid,
                model.hf->place, fmt::format("{}: {}", model.hf->value, error->message),
                error->remedy);
    return std::nullopt;
  }
  auto& network = std::get<ConfiguredNetwork>(described);
  for (const std::string& note : network.notes) {
    add_problem(preparation_, Kind::note, model.hf->place, note);
  }
  return std::move(network.description);
}

std::optional<NetworkDescription> NetworkReader::describe(const ModelSpec& model) {
  find_unsupported_keys(model);
  std::optional<NetworkDescription> description;
  if (model.preset) {
    description = describe_named(model);
  } else if (model.hf) {
    description = describe_configured(model);
  } else if (!model.layers.empty()) {
    description.emplace();
    description->name = "layers";
    description->layers = layers(model.layers);
  }
  if (!description) {
    return std::nullopt;
  }
  if (!model.input.empty()) {
    description->input.emplace();
    for (const Placed<int64_t>& size : model.input) {
      description->input->push_back(size.value);
    }
  }
  if (model.input_dtype) {
    description->input_dtype = dtype_named(model.input_dtype->value).value_or(DType::fp32);
  }
  // A preset's own loss goes before the default, not before one that is given.
  if (model.loss && (!model.preset || model.loss->place.line > 0)) {
    description->loss = {.kind = model.loss->name, .source = model.loss->place};
    description->loss.arguments = arguments(model.loss->arguments);
  }
  description->initial = model.initial;
  if (model.attention) {
    description->flash_attention = model.attention->value == AttentionKind::flash;
  }
  mark_segments(model, *description);
  mark_segments_of_strategy(*description);
  return description;
}

/// Modules whose input is the output of another, and whose output is the input of one.
struct Chained {
  std::set<std::string> inputs;
  std::set<std::string> outputs;
};

Chained chained_modules(const Scenario& scenario) {
  Chained chained;
  if (!scenario.program) {
    return chained;
  }
  for_each_statement(*scenario.program, [&](const Statement& statement) {
    if (statement.modules) {
      const std::vector<std::string>& names = statement.modules->value;
      chained.outputs.insert(names.begin(), std::prev(names.end()));
      chained.inputs.insert(std::next(names.begin()), names.end());
    }
  });
  return chained;
}

std::optional<Network> network_of(Preparation& preparation, const ModelSpec& model,
                                  const std::vector<std::string>& checkpointed,
                                  const ModuleBorders& borders = {}) {
  NetworkReader reader(preparation, checkpointed);
  std::optional<NetworkDescription> description = reader.describe(model);
  if (!description) {
    return std::nullopt;
  }
  description->input_has_gradient = borders.input_has_gradient;
  description->output_is_input = borders.output_is_input;
  BuildResult built = build_network(*description);
  for (const NetworkError& error : built.errors) {
    const SourcePlace& place = error.source.line > 0 ? error.source : model.place;
    const bool is_refused = std::ranges::any_of(preparation.problems, [&](const Problem& known) {
      return known.kind == Kind::refused && known.place.line == place.line &&
             known.place.file == place.file;
    });
    if (is_refused) {
      continue;  // torch's own reason says it
    }
    if (!error.unknown_kind.empty()) {  // the loader accepts only names that exist
      add_problem(preparation, Kind::unsupported, place,
                  fmt::format("the {} {} is not modelled yet",
                              error.path == "loss" ? "loss" : "layer", error.unknown_kind),
                  error.remedy);
      continue;
    }
    add_problem(preparation, error.is_unmodelled ? Kind::unsupported : Kind::invalid, place,
                error.path + ": " + error.message, error.remedy);
  }
  return built.ok() ? std::optional(std::move(built.network)) : std::nullopt;
}

}  // namespace

std::shared_ptr<const Network> prepare_network(Preparation& preparation,
                                               const std::vector<std::string>& checkpointed) {
  const Scenario& scenario = *preparation.scenario;
  ensure(scenario.model.has_value(), "defaults name a model");
  if (scenario.model->modules.empty()) {
    std::optional<Network> network = network_of(preparation, *scenario.model, checkpointed);
    return network ? std::make_shared<const Network>(std::move(*network)) : nullptr;
  }
  const Chained chained = chained_modules(scenario);
  std::vector<NamedNetwork> parts;
  for (const NamedModel& module : scenario.model->modules) {
    const ModuleBorders borders{chained.inputs.contains(module.name),
                                chained.outputs.contains(module.name)};
    if (auto network = network_of(preparation, module.model, checkpointed, borders)) {
      parts.push_back({module.name, std::move(*network)});
    }
  }
  return parts.size() == scenario.model->modules.size()
             ? std::make_shared<const Network>(joined(std::move(parts)))
             : nullptr;
}

}  // namespace lockstep
