#include "io/schema/schema.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "io/scenario/classes/catalogue.hpp"
#include "io/scenario/forms/key_row.hpp"
#include "io/scenario/forms/tables.hpp"
#include "io/scenario/sections/sections.hpp"
#include "io/scenario/statements/statement_table.hpp"
#include "model/expression/unit.hpp"
#include "model/scenario/hooks.hpp"

namespace lockstep {
namespace {

/// Keys keep the order of the tables.
using Json = nlohmann::ordered_json;

Json reference(std::string_view definition) {
  return {{"$ref", fmt::format("#/definitions/{}", definition)}};
}

/// A number and one of the units of a kind; `0` alone is legal.
Json quantity(QuantityKind kind, std::string_view example) {
  std::string names;
  for (const Unit& unit : units) {
    if (unit.kind == kind) {
      names += (names.empty() ? "" : "|") + std::string(unit.name);
    }
  }
  return {{"anyOf",
           {{{"const", 0}},
            {{"type", "string"},
             {"pattern", fmt::format("^[0-9][0-9_]*(\\.[0-9]+)?([eE][-+]?[0-9]+)? ?({})$", names)},
             {"examples", {example}}}}}};
}

Json any_of(std::vector<Json> choices) { return {{"anyOf", std::move(choices)}}; }

Json list_of(Json item) { return {{"type", "array"}, {"items", std::move(item)}}; }

Json map_of(Json value) { return {{"type", "object"}, {"additionalProperties", std::move(value)}}; }

/// YAML gives `3e8` and `1_000` as numbers or as texts, depending on who reads it.
Json scalar_definitions() {
  const Json text_number = {{"type", "string"},
                            {"pattern", "^[-+]?[0-9][0-9_]*(\\.[0-9]+)?([eE][-+]?[0-9]+)?$"}};
  const Json scalar = {{"type", {"string", "number", "boolean"}}};
  Json out;
  out["int"] =
      any_of({{{"type", "integer"}}, {{"type", "number"}, {"multipleOf", 1}}, text_number});
  out["float"] = any_of({{{"type", "number"}}, text_number, {{"enum", {"inf", "-inf"}}}});
  out["time"] = quantity(QuantityKind::time, "10 ms");
  out["bytes"] = quantity(QuantityKind::bytes, "64 MiB");
  out["rate"] = quantity(QuantityKind::rate, "450 GB/s");
  out["flops_per_second"] = quantity(QuantityKind::flops_rate, "312 TFLOP/s");
  out["percent"] = {{"type", "string"}, {"pattern", "^[0-9][0-9_.]* ?%$"}};
  out["instant"] =
      any_of({{{"type", "string"}, {"pattern", "^(step|epoch) [0-9][0-9_]*$"}}, reference("time")});
  out["ranks"] = any_of({{{"type", "integer"}, {"minimum", 0}},
                         list_of({{"type", "integer"}, {"minimum", 0}}),
                         {{"enum", {"all", "others"}}}});
  out["expression"] = any_of({scalar, list_of(reference("expression"))});
  out["numbers"] = any_of({reference("float"),
                           list_of(reference("numbers")),
                           {{"type", "object"},
                            {"required", {"csv"}},
                            {"properties", {{"csv", {{"type", "string"}}}}},
                            {"additionalProperties", false}}});
  out["name"] = {{"type", "string"}, {"pattern", "^(self\\.)?[A-Za-z_][A-Za-z0-9_]*$"}};
  out["text"] = {{"type", {"string", "number"}}};
  return out;
}

Json properties_of(const std::vector<KeyRow>& rows);

std::string description_of(std::string_view meaning, std::string_view default_text) {
  return default_text.empty() ? std::string(meaning)
                              : fmt::format("{}. Default: {}", meaning, default_text);
}

Json json_of(const StrategyArguments::Value& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) {
          return nullptr;
        } else {
          return held;
        }
      },
      value);
}

/// What a strategy says of its arguments; the loader checks types.
Json schema_of(const ArgumentRow& argument) {
  Json schema = Json::object();
  if (const StrategyArgument* row = argument.of_strategy) {
    schema["description"] = description_of(row->meaning, row->shown_default());
    if (const auto value = default_of(*row)) {
      schema["default"] = json_of(*value);
    }
  }
  return schema;
}

/// `Name`, `{Name: arguments}`, or `class_path` with `init_args`.
Json object_definition(ObjectRole role) {
  Json names = Json::array();
  Json properties = Json::object();
  for (const ClassRow& row : classes(role)) {
    names.push_back(row.name);
    Json arguments = Json::object();
    for (const ArgumentRow& argument : arguments_of(row)) {
      arguments[std::string(argument.name)] = schema_of(argument);
    }
    const bool layer = role == ObjectRole::layer;
    properties[std::string(row.name)] =
        any_of({{{"type", "object"},
                 {"properties", std::move(arguments)},
                 {"additionalProperties", layer ? reference("any") : Json(false)}},
                {{"type", {"array", "string", "number", "boolean", "null"}}}});
  }
  Json one = {{"type", "object"},
              {"properties", std::move(properties)},
              {"additionalProperties", false},
              {"minProperties", 1},
              {"maxProperties", 1}};
  if (role == ObjectRole::layer) {  // the keys of every layer also stand beside it
    const Json own = properties_of(find_rows("layer")->rows);
    for (const auto& [key, schema] : own.items()) {
      one["properties"][key] = schema;
    }
    one.erase("maxProperties");
  }
  const Json by_path = {{"type", "object"},
                        {"required", {"class_path"}},
                        {"properties",
                         {{"class_path", {{"type", "string"}}},
                          {"init_args", {{"type", "object"}}},
                          {"dict_kwargs", {{"type", "object"}}}}},
                        {"additionalProperties", false}};
  return any_of({{{"enum", std::move(names)}}, std::move(one), by_path});
}

constexpr ObjectRole roles[] = {
    ObjectRole::strategy,     ObjectRole::callback, ObjectRole::optimizer,
    ObjectRole::lr_scheduler, ObjectRole::metric,   ObjectRole::loss,
    ObjectRole::launcher,     ObjectRole::profiler, ObjectRole::plugin};

/// The role of the objects that a key holds.
std::string_view role_of(std::string_view key) {
  if (key == "callbacks" || key == "plugins") {
    return key.substr(0, key.size() - 1);
  }
  return key;
}

/// By the name of a form on the reference page.
std::vector<std::pair<std::string_view, Json>> schemas_of_forms() {
  const std::vector<std::pair<std::string_view, Json>> forms = {
      {"bool", {{"type", "boolean"}}},
      {"int", reference("int")},
      {"float", reference("float")},
      {"time", reference("time")},
      {"bytes", reference("bytes")},
      {"rate", reference("rate")},
      {"flops/s", reference("flops_per_second")},
      {"percent", reference("percent")},
      {"instant", reference("instant")},
      {"ranks", reference("ranks")},
      {"expr", reference("expression")},
      {"int or expr", reference("expression")},
      {"text", reference("text")},
      {"name", reference("name")},
      {"path", {{"type", "string"}}},
      {"path or list", any_of({{{"type", "string"}}, list_of({{"type", "string"}})})},
      {"statements", reference("statements")},
      {"list of statements of each thread", list_of(reference("statements"))},
      {"map NAME: statements", map_of(reference("statements"))},
      {"list of layers", reference("layers")},
      {"map KEY: expr", map_of(reference("expression"))},
      {"map LIBRARY: text", map_of(reference("text"))},
      {"map NAME: text", map_of({{"type", {"string", "number", "boolean"}}})},
      {"map NAME: object", map_of(reference("metric"))},
      {"map CODE: reason", map_of({{"type", "string"}})},
      {"map NAME: scenario", map_of(reference("case"))},
      {"map NAME: model", map_of(reference("model"))},
      {"map NAME: numbers", map_of(reference("numbers"))},
  };
  return forms;
}

/// What a form's name on the reference page means in the schema.
Json schema_of_type(const KeyRow& row) {
  const std::string_view type = row.type;
  if (!row.words.empty()) {
    Json words = Json::array();
    for (const std::string_view word : row.words) {
      words.push_back(word);
      if (word == "true" || word == "false") {
        words.push_back(word == "true");
      }
    }
    return {{"enum", std::move(words)}};
  }
  for (const auto& [name, schema] : schemas_of_forms()) {
    if (name == type) {
      return schema;
    }
  }
  if (type == "object") {
    return reference(role_of(row.key));
  }
  if (type == "object, or list of objects") {
    return any_of({reference(role_of(row.key)), list_of(reference(role_of(row.key)))});
  }
  if (type == "preset name, or map") {
    return any_of({{{"type", "string"}}, reference(row.table)});
  }
  if (type == "map, or list of maps") {
    return any_of({reference(row.table), list_of(reference(row.table))});
  }
  if (type == "list" && (row.key == "faults" || row.key == "expect")) {
    return list_of(row.key == "faults" ? reference("fault") : Json{{"type", "string"}});
  }
  return row.table.empty() ? Json::object() : reference(row.table);
}

Json schema_of(const KeyRow& row) {
  Json schema = schema_of_type(row);
  if (row.type == "int" && schema.contains("$ref") && std::isfinite(row.minimum)) {
    schema = {{"allOf", {schema}}, {"minimum", static_cast<int64_t>(row.minimum)}};
    if (std::isfinite(row.maximum)) {
      schema["maximum"] = static_cast<int64_t>(row.maximum);
    }
  }
  if (row.list) {
    schema = list_of(std::move(schema));
  }
  // Null asks for the default, in every map that a table describes.
  Json out = any_of({std::move(schema), {{"type", "null"}}});
  out["description"] = description_of(row.meaning, row.default_text);
  return out;
}

Json properties_of(const std::vector<KeyRow>& rows) {
  Json properties = Json::object();
  for (const KeyRow& row : rows) {
    properties[std::string(row.key)] = schema_of(row);
  }
  return properties;
}

Json closed_map(Json properties) {
  return {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

Json fault_definition() {
  Json properties = Json::object();
  for (const std::string_view name : fault_names()) {
    properties[std::string(name)] =
        closed_map(properties_of(find_rows(fmt::format("fault.{}", name))->rows));
  }
  Json one = closed_map(std::move(properties));
  one["minProperties"] = 1;
  one["maxProperties"] = 1;
  return one;
}

/// A statement is a name, or a map of one; `if` and `repeat` have keys beside their own.
Json statement_definition() {
  Json names = Json::array();
  Json properties = Json::object();
  std::vector<Json> with_siblings;
  const Json at = {{"type", "string"}};
  for (const StatementRow& row : statement_rows()) {
    Json keys = properties_of(rows_of(Table<Statement>{row.name(), row.fields}));
    keys["at"] = at;
    if (row.kind == StatementKind::branch || row.kind == StatementKind::repeat) {
      Json map = closed_map(std::move(keys));
      map["required"] = Json::array({row.name()});
      with_siblings.push_back(std::move(map));
      continue;
    }
    names.push_back(row.name());
    const bool binds = row.kind == StatementKind::let || row.kind == StatementKind::append;
    Json map = binds ? map_of(reference("expression")) : closed_map(std::move(keys));
    map["description"] = row.meaning;
    std::vector<Json> forms = {std::move(map), {{"type", "null"}}};
    if (!row.argument.empty()) {
      forms.push_back({{"type", {"string", "number", "boolean", "array"}}});
    }
    properties[std::string(row.name())] = any_of(std::move(forms));
  }
  Json one = closed_map(std::move(properties));
  one["minProperties"] = 1;
  one["maxProperties"] = 1;
  std::vector<Json> forms = {{{"enum", std::move(names)}}, std::move(one)};
  forms.insert(forms.end(), with_siblings.begin(), with_siblings.end());
  return any_of(std::move(forms));
}

Json program_definition() {
  Json properties = properties_of(find_rows("program")->rows);
  for (const HookName& hook : hook_names()) {
    properties[std::string(hook.name)] = any_of({reference("statements"), {{"type", "null"}}});
  }
  return closed_map(std::move(properties));
}

/// Layers nest, and `repeat` comes beside its layers.
void add_layers(Json& definitions) {
  const Json own = properties_of(find_rows("layer")->rows);
  Json extras = own;
  extras["layers"] = reference("layers");
  Json aside = extras;
  aside["of"] = reference("layers");
  aside["as"] = {{"type", "string"}};
  extras["shortcut"] = reference("layers");
  const Json container = any_of({closed_map(extras), reference("layers")});
  Json cost = properties_of(find_rows("Cost")->rows);
  for (const auto& [key, schema] : own.items()) {
    cost[key] = schema;
  }
  extras["repeat"] = {{"type", "integer"}, {"minimum", 1}};
  Json repeat = closed_map(extras);
  repeat["required"] = {"repeat", "layers"};
  definitions["any"] = Json::object();
  Json nested = {{"Sequential", container},
                 {"Residual", container},
                 {"Concatenate", container},
                 {"Multiply", container},
                 {"Aside", closed_map(std::move(aside))},
                 {"Cost", closed_map(std::move(cost))}};
  for (const auto& [key, schema] : own.items()) {
    nested[key] = schema;
  }
  definitions["layers"] = list_of(any_of({
      object_definition(ObjectRole::layer),
      closed_map(std::move(nested)),
      std::move(repeat),
  }));
  definitions["layers"]["minItems"] = 1;
}

Json definitions() {
  Json out = scalar_definitions();
  for (const ObjectRole role : roles) {
    out[std::string(name_of(role))] = object_definition(role);
  }
  add_layers(out);
  out["statements"] = list_of(statement_definition());
  out["fault"] = any_of({{{"enum", fault_names()}}, fault_definition()});
  for (const TableRows& table : all_tables()) {
    if (!table.statement && table.name != "scenario") {
      out[std::string(table.name)] = closed_map(properties_of(table.rows));
    }
  }
  out["program"] = program_definition();
  Json values = properties_of(find_rows("scenario")->rows);
  for (const char* head : {"version", "include", "cases"}) {
    values.erase(head);
  }
  values.update(properties_of(find_rows("case")->rows));
  out["case"] = any_of({closed_map(std::move(values)), {{"type", "null"}}});
  return out;
}

}  // namespace

std::string json_schema() {
  Json schema;
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["title"] = "Lockstep scenario, version 1";
  schema["type"] = "object";
  schema["properties"] = properties_of(find_rows("scenario")->rows);
  schema["properties"]["version"] = {{"const", 1},
                                     {"description", "version of the scenario format"}};
  schema["additionalProperties"] = false;
  schema["definitions"] = definitions();
  return schema.dump(2) + "\n";
}

}  // namespace lockstep
