#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::test {

/// Holds values against a JSON Schema of draft 2020-12 that keeps to a few keywords: `type`,
/// `required`, `properties`, `additionalProperties`, `items`, `enum`, `const`, `anyOf`, and `$ref`
/// to `#/$defs/NAME`; `$schema`, `$defs`, `title` and `description` say nothing about a value.
class JsonSchema {
 public:
  explicit JsonSchema(nlohmann::json schema) : root_(std::move(schema)) {}

  /// What of the schema itself cannot be understood: other keywords, references to nothing.
  std::vector<std::string> faults() const;
  /// Where the value breaks the schema: "/cases/0/seed: is no integer". Empty: nowhere.
  std::vector<std::string> errors(const nlohmann::json& value) const;

 private:
  void find_faults(const nlohmann::json& schema, const std::string& where,
                   std::vector<std::string>& faults) const;
  void check(const nlohmann::json& schema, const nlohmann::json& value, const std::string& where,
             std::vector<std::string>& errors) const;
  void check_object(const nlohmann::json& schema, const nlohmann::json& value,
                    const std::string& where, std::vector<std::string>& errors) const;
  const nlohmann::json* referenced(const std::string& reference) const;

  nlohmann::json root_;
};

}  // namespace lockstep::test
