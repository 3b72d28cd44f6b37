#include "tests/cli_test/json_schema.hpp"

#include <algorithm>
#include <set>

namespace lockstep::test {

using nlohmann::json;

namespace {

const std::set<std::string> types = {"object", "array",   "string", "integer",
                                     "number", "boolean", "null"};

bool has_type(const json& value, const std::string& type) {
  return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
         (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
         (type == "null" && value.is_null()) || (type == "number" && value.is_number()) ||
         (type == "integer" && value.is_number_integer());
}

std::vector<std::string> types_of(const json& schema) {
  const json& type = schema.at("type");
  return type.is_array() ? type.get<std::vector<std::string>>()
                         : std::vector{type.get<std::string>()};
}

}  // namespace

const json* JsonSchema::referenced(const std::string& reference) const {
  const std::string start = "#/$defs/";
  const json& definitions = root_.contains("$defs") ? root_.at("$defs") : json::object();
  if (!reference.starts_with(start) || !definitions.contains(reference.substr(start.size()))) {
    return nullptr;
  }
  return &root_.at("$defs").at(reference.substr(start.size()));
}

std::vector<std::string> JsonSchema::faults() const {
  std::vector<std::string> faults;
  find_faults(root_, "#", faults);
  return faults;
}

void JsonSchema::find_faults(const json& schema, const std::string& where,
                             std::vector<std::string>& faults) const {
  if (schema.is_boolean()) {
    return;
  }
  if (!schema.is_object()) {
    faults.push_back(where + ": is no schema");
    return;
  }
  for (const auto& [key, value] : schema.items()) {
    const std::string at = where + "/" + key;
    if (key == "properties" || key == "$defs") {
      for (const auto& [name, part] : value.items()) {
        find_faults(part, at + "/" + name, faults);
      }
    } else if (key == "items" || key == "additionalProperties") {
      find_faults(value, at, faults);
    } else if (key == "anyOf") {
      for (size_t index = 0; index < value.size(); ++index) {
        find_faults(value[index], at + "/" + std::to_string(index), faults);
      }
    } else if (key == "$ref") {
      if (referenced(value) == nullptr) {
        faults.push_back(at + ": there is no " + value.get<std::string>());
      }
    } else if (key == "type") {
      for (const std::string& type : types_of(schema)) {
        if (!types.contains(type)) {
          faults.push_back(at + ": there is no type " + type);
        }
      }
    } else if (key != "required" && key != "enum" && key != "const" && key != "title" &&
               key != "description" && key != "$schema") {
      faults.push_back(at + ": unknown keyword");
    }
  }
}

std::vector<std::string> JsonSchema::errors(const json& value) const {
  std::vector<std::string> errors;
  check(root_, value, "", errors);
  return errors;
}

void JsonSchema::check(const json& schema, const json& value, const std::string& where,
                       std::vector<std::string>& errors) const {
  if (schema.is_boolean()) {
    if (!schema.get<bool>()) {
      errors.push_back(where + ": must not be there");
    }
    return;
  }
  if (schema.contains("$ref")) {
    check(*referenced(schema.at("$ref")), value, where, errors);
  }
  if (schema.contains("type")) {
    const std::vector<std::string> allowed = types_of(schema);
    if (std::ranges::none_of(allowed, [&](const auto& type) { return has_type(value, type); })) {
      errors.push_back(where + ": is no " + schema.at("type").dump());
      return;
    }
  }
  if (schema.contains("const") && value != schema.at("const")) {
    errors.push_back(where + ": is not " + schema.at("const").dump());
  }
  if (schema.contains("enum") &&
      std::ranges::find(schema.at("enum"), value) == std::ranges::end(schema.at("enum"))) {
    errors.push_back(where + ": " + value.dump() + " is none of " + schema.at("enum").dump());
  }
  if (schema.contains("anyOf")) {
    std::vector<std::string> nearest;
    bool met = false;
    for (const json& one : schema.at("anyOf")) {
      std::vector<std::string> own;
      check(one, value, where, own);
      met = met || own.empty();
      nearest = nearest.empty() || own.size() < nearest.size() ? own : nearest;
    }
    if (!met) {
      errors.push_back(where + ": is none of the alternatives; the nearest:");
      errors.insert(errors.end(), nearest.begin(), nearest.end());
    }
  }
  if (schema.contains("items") && value.is_array()) {
    for (size_t index = 0; index < value.size(); ++index) {
      check(schema.at("items"), value[index], where + "/" + std::to_string(index), errors);
    }
  }
  if (value.is_object()) {
    check_object(schema, value, where, errors);
  }
}

void JsonSchema::check_object(const json& schema, const json& value, const std::string& where,
                              std::vector<std::string>& errors) const {
  if (schema.contains("required")) {
    for (const json& key : schema.at("required")) {
      if (!value.contains(key.get<std::string>())) {
        errors.push_back(where + ": lacks " + key.get<std::string>());
      }
    }
  }
  const json known = schema.contains("properties") ? schema.at("properties") : json::object();
  for (const auto& [key, part] : value.items()) {
    if (known.contains(key)) {
      check(known.at(key), part, where + "/" + key, errors);
    } else if (schema.contains("additionalProperties")) {
      check(schema.at("additionalProperties"), part, where + "/" + key, errors);
    }
  }
}

}  // namespace lockstep::test
