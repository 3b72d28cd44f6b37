#include "io/sweep/sweep_fields.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

std::string type_name(const Json& json) {
  switch (json.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "a list";
    case Json::value_t::string: return "text";
    case Json::value_t::boolean: return json.dump();
    default: return fmt::format("the number {}", json.dump());
  }
}

[[noreturn]] void fail(const std::string& name, const Json& json, const std::string& wanted) {
  throw SweepFieldError(fmt::format("`{}` is {}, not {}", name, type_name(json), wanted));
}

// A number above the range is stored without its sign.
bool is_whole(const Json& json) {
  return json.is_number_integer() &&
         (!json.is_number_unsigned() || json.get<uint64_t>() <= INT64_MAX);
}

int64_t whole_of(const Json& json, const std::string& name) {
  if (!is_whole(json)) {
    fail(name, json, "a whole number");
  }
  return json.get<int64_t>();
}

std::string text_of(const Json& json, const std::string& name) {
  if (!json.is_string()) {
    fail(name, json, "text");
  }
  return json.get<std::string>();
}

std::vector<std::string> texts_of(const Json& json, const std::string& name) {
  if (!json.is_array()) {
    fail(name, json, "a list of texts");
  }
  std::vector<std::string> texts;
  for (const Json& item : json) {
    texts.push_back(text_of(item, fmt::format("{}[{}]", name, texts.size())));
  }
  return texts;
}

const Json& map_of(const Json& json, const std::string& name) {
  if (!json.is_object()) {
    fail(name, json, "an object");
  }
  return json;
}

Time time_of(double in_seconds) {
  const double count = in_seconds * static_cast<double>(picoseconds_per_second);
  const bool fits = std::abs(count) < static_cast<double>(Time::max().count());
  return fits ? Time(std::llround(count)) : Time::max();
}

Value figure_of(const Json& json, const std::string& name, const Value& like) {
  switch (like.kind()) {
    case Value::Kind::text: return Value(text_of(json, name));
    case Value::Kind::integer: return Value(whole_of(json, name));
    case Value::Kind::quantity:
    case Value::Kind::floating: break;
    default: fail(name, json, "null");
  }
  if (!json.is_number()) {
    fail(name, json, "a number");
  }
  if (like.is(Value::Kind::floating)) {
    return Value(json.get<double>());
  }
  return like.quantity().kind == QuantityKind::time ? Value(time_of(json.get<double>()))
                                                    : Value(Bytes(whole_of(json, name)));
}

}  // namespace

const Json& SweepFields::at(const char* name) const {
  const auto found = object_.find(name);
  if (found == object_.end()) {
    throw SweepFieldError(fmt::format("`{}` is missing", name));
  }
  return *found;
}

int64_t SweepFields::whole(const char* name, int64_t least) const {
  const int64_t number = whole_of(at(name), name);
  if (number < least) {
    throw SweepFieldError(
        fmt::format("`{}` is {}, and at least {} is needed", name, number, least));
  }
  return number;
}

std::string SweepFields::text(const char* name) const { return text_of(at(name), name); }

std::vector<std::string> SweepFields::texts(const char* name) const {
  return texts_of(at(name), name);
}

std::vector<std::vector<std::string>> SweepFields::lists(const char* name) const {
  const Json& json = at(name);
  if (!json.is_array()) {
    fail(name, json, "a list of lists");
  }
  std::vector<std::vector<std::string>> lists;
  for (const Json& item : json) {
    lists.push_back(texts_of(item, fmt::format("{}[{}]", name, lists.size())));
  }
  return lists;
}

std::vector<std::pair<std::string, std::string>> SweepFields::texts_by_key(const char* name) const {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [key, item] : map_of(at(name), name).items()) {
    texts.emplace_back(key, text_of(item, fmt::format("{}.{}", name, key)));
  }
  return texts;
}

std::vector<std::pair<std::string, Value>> SweepFields::figures(const char* name) const {
  const Json& json = map_of(at(name), name);
  std::vector<std::pair<std::string, Value>> figures;
  for (const std::string_view figure : figure_names()) {
    const std::string key = figure_key(figure);
    const auto found = json.find(key);
    if (found != json.end() && !found->is_null()) {
      figures.emplace_back(
          figure, figure_of(*found, fmt::format("{}.{}", name, key), figure_stand_in(figure, 0)));
    }
  }
  return figures;
}

}  // namespace lockstep
