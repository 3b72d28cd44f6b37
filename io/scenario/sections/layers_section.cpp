#include <fmt/format.h>

#include "io/scenario/classes/other_classes.hpp"
#include "io/scenario/forms/plain.hpp"
#include "io/scenario/forms/section_forms.hpp"
#include "io/scenario/sections/initial_form.hpp"
#include "io/scenario/sections/sections.hpp"

namespace lockstep {
namespace {

constexpr double most_layers = 1e6;

/// Values of parameters and buffers.
/// Truth values, or whose rules hold.
struct CheckpointForm : FormWithoutWords {
  static constexpr std::string_view type = "word";
  static std::vector<std::string_view> words() { return {"false", "true", "torch", "fairscale"}; }
  static std::optional<LayerCheckpoint> read(Reader& reader, const Node& node, const KeyRow& row) {
    constexpr LayerCheckpoint meanings[] = {LayerCheckpoint::none, LayerCheckpoint::torch,
                                            LayerCheckpoint::torch, LayerCheckpoint::fairscale};
    const std::optional<size_t> index = read_word(reader, node, row, words());
    return index ? std::optional(meanings[*index]) : std::nullopt;
  }
};

/// The arguments that every layer has beside torch's.
void read_extras(Reader& reader, const Node* arguments, LayerSpec& layer) {
  if (arguments == nullptr || arguments->kind != Node::Kind::map) {
    return;
  }
  Node extras = *arguments;
  const std::vector<std::string_view> keys = keys_of(layer_extra_table());
  std::erase_if(extras.entries, [&](const Entry& entry) {
    return std::find(keys.begin(), keys.end(), entry.key) == keys.end();
  });
  read_table(reader, extras, layer_extra_table(), layer);
}

/// The second list of layers of some containers; empty: it has one list.
std::string_view second_list_of(LayerSpec::Kind kind) {
  return kind == LayerSpec::Kind::residual ? "shortcut"
         : kind == LayerSpec::Kind::aside  ? "of"
                                           : "";
}

/// `{Sequential: {layers: [..]}}`, `{Residual: ..}`, `{Concatenate: ..}`, `{Multiply: ..}` and
/// `{Aside: ..}`.
void read_container(Reader& reader, const ObjectNode& object, LayerSpec& layer) {
  const Node* arguments = object.arguments;
  if (arguments != nullptr && arguments->kind == Node::Kind::list) {
    layer.layers = read_layers(reader, *arguments);
    return;
  }
  if (arguments == nullptr || arguments->kind != Node::Kind::map ||
      arguments->find("layers") == nullptr) {
    reader.fail(object.mark, fmt::format("`{}` needs its `layers`", object.name),
                fmt::format("write {{{}: {{layers: [..]}}}}", object.name));
    return;
  }
  std::vector<std::string_view> legal = keys_of(layer_extra_table());
  legal.push_back("layers");
  const std::string_view second = second_list_of(layer.kind);
  if (!second.empty()) {
    legal.push_back(second);
  }
  if (layer.kind == LayerSpec::Kind::aside) {
    legal.push_back("as");
  }
  for (const Entry& entry : arguments->entries) {
    if (layer.kind == LayerSpec::Kind::aside && entry.key == "as") {
      const std::optional<PlainValue> name = read_plain(reader, *entry.value, entry.key);
      layer.object.arguments.push_back(
          {"as", name.value_or(PlainValue{}), reader.place(entry.mark)});
    } else if (entry.key == "layers") {
      layer.layers = read_layers(reader, *entry.value);
    } else if (!second.empty() && entry.key == second) {
      layer.shortcut = read_layers(reader, *entry.value);
    } else if (std::find(legal.begin(), legal.end(), entry.key) == legal.end()) {
      fail_unknown_key(reader, entry, object.name, legal);
    }
  }
}

/// `{repeat: N, layers: [..]}`.
void read_repeat(Reader& reader, const Node& node, LayerSpec& layer) {
  layer.kind = LayerSpec::Kind::repeat;
  std::vector<std::string_view> legal = keys_of(layer_extra_table());
  legal.insert(legal.end(), {"repeat", "layers"});
  for (const Entry& entry : node.entries) {
    if (entry.key == "repeat") {
      const KeyRow row{"repeat", "", "", 1, most_layers};
      layer.times = IntForm::read(reader, *entry.value, row).value_or(1);
    } else if (entry.key == "layers") {
      layer.layers = read_layers(reader, *entry.value);
    } else if (std::find(legal.begin(), legal.end(), entry.key) == legal.end()) {
      fail_unknown_key(reader, entry, "repeat", legal);
    }
  }
  read_extras(reader, &node, layer);
  if (node.find("layers") == nullptr) {
    reader.fail(node.mark, "`repeat` needs `layers` beside it", "write {repeat: 12, layers: [..]}");
  }
}

void read_cost(Reader& reader, const ObjectNode& object, LayerSpec& layer) {
  layer.kind = LayerSpec::Kind::cost;
  if (object.arguments == nullptr || object.arguments->kind != Node::Kind::map) {
    reader.fail(object.mark, "`Cost` needs its price",
                "write {Cost: {parameters: 1000, forward: 1 ms, backward: 2 ms}}");
    return;
  }
  Node price = *object.arguments;
  const std::vector<std::string_view> extras = keys_of(layer_extra_table());
  std::erase_if(price.entries, [&](const Entry& entry) {
    return std::find(extras.begin(), extras.end(), entry.key) != extras.end();
  });
  read_table(reader, price, layer_cost_table(), layer.cost);
}

void read_module(Reader& reader, const ObjectNode& object, LayerSpec& layer) {
  const ClassRow* known = find_class(ObjectRole::layer, object.name);
  if (known == nullptr) {
    if (!is_other_class(ObjectRole::layer, object.name)) {
      fail_unknown_class(
          reader, object, ObjectRole::layer,
          {"Sequential", "Residual", "Concatenate", "Multiply", "Aside", "Cost", "repeat"});
      return;
    }
    layer.object = {object.name, {}, reader.place(object.mark)};
    return;
  }
  layer.object = {object.name, read_arguments(reader, object, *known, keys_of(layer_extra_table())),
                  reader.place(object.mark)};
}

/// `{Linear: [8, 8], name: aux}`: takes the keys of every layer that stand beside the layer.
Node without_extras_beside(Reader& reader, const Node& node, LayerSpec& layer) {
  Node own = node;
  if (node.kind != Node::Kind::map || node.entries.size() < 2) {
    return own;
  }
  Node beside = node;
  const std::vector<std::string_view> keys = keys_of(layer_extra_table());
  const auto is_extra = [&](const Entry& entry) {
    return std::find(keys.begin(), keys.end(), entry.key) != keys.end();
  };
  std::erase_if(own.entries, is_extra);
  if (own.entries.empty()) {
    return node;  // no layer stands there: said about the whole map
  }
  std::erase_if(beside.entries, [&](const Entry& entry) { return !is_extra(entry); });
  read_table(reader, beside, layer_extra_table(), layer);
  return own;
}

std::optional<LayerSpec::Kind> container_named(std::string_view name) {
  if (name == "Sequential") {
    return LayerSpec::Kind::sequential;
  }
  if (name == "Residual") {
    return LayerSpec::Kind::residual;
  }
  if (name == "Multiply") {
    return LayerSpec::Kind::multiply;
  }
  if (name == "Aside") {
    return LayerSpec::Kind::aside;
  }
  return name == "Concatenate" ? std::optional(LayerSpec::Kind::concatenate) : std::nullopt;
}

std::optional<LayerSpec> read_layer(Reader& reader, const Node& node) {
  LayerSpec layer;
  layer.place = reader.place(node);
  if (node.kind == Node::Kind::map && node.find("repeat") != nullptr) {
    read_repeat(reader, node, layer);
    return layer;
  }
  // Its parts point into it.
  const Node own = without_extras_beside(reader, node, layer);
  const std::optional<ObjectNode> object = take_object(reader, own, "layers");
  if (!object) {
    return std::nullopt;
  }
  layer.place = reader.place(object->mark);
  layer.object.name = object->name;
  read_extras(reader, object->arguments, layer);
  if (const auto container = container_named(object->name)) {
    layer.kind = *container;
    read_container(reader, *object, layer);
  } else if (object->name == "Cost") {
    read_cost(reader, *object, layer);
  } else {
    read_module(reader, *object, layer);
  }
  return layer;
}

}  // namespace

Table<LayerCost> layer_cost_table() {
  return {"Cost",
          {
              field<&LayerCost::parameters>({"parameters", "0", "how many", 0, 1e15}),
              field<&LayerCost::forward>({"forward", "0", "of one sample"}),
              field<&LayerCost::backward>({"backward", "0", "of one sample"}),
              field<&LayerCost::activation>({"activation", "0", "kept for backward, one sample"}),
          }};
}

Table<LayerSpec> layer_extra_table() {
  return {"layer",
          {
              field<&LayerSpec::name>({"name", "its position", "for `skip` and messages"}),
              field<&LayerSpec::checkpoint, CheckpointForm>(
                  {"checkpoint", "false", "activations are computed again in backward"}),
              field<&LayerSpec::trainable>({"trainable", "true", "false = frozen"}),
              field<&LayerSpec::frozen_on>({"frozen_on", "[]", "ranks that freeze it", 0, 1e6}),
              field<&LayerSpec::device>({"device", "0", "stage or device that holds it", 0, 1e6}),
              field<&LayerSpec::initial, InitialForm>(
                  {"initial", "drawn from the seed", "values of its parameters and buffers"}),
          }};
}

std::vector<LayerSpec> read_layers(Reader& reader, const Node& node) {
  std::vector<LayerSpec> layers;
  if (node.kind != Node::Kind::list) {
    reader.fail_type(node, "layers", "a list", "write [{Linear: [32, 2]}, ReLU]");
    return layers;
  }
  if (node.items.empty()) {
    reader.fail(node.mark, "`layers` is empty", "write [{Linear: [32, 2]}]");
  }
  for (const NodePtr& item : node.items) {
    if (auto layer = read_layer(reader, *item)) {
      layers.push_back(std::move(*layer));
    }
  }
  return layers;
}

}  // namespace lockstep
