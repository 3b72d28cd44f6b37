#include "io/scenario/load/config_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "io/scenario/load/digest.hpp"
#include "io/scenario/load/json_places.hpp"

namespace lockstep {

namespace {

using nlohmann::json;

constexpr size_t most_bytes = size_t{1} << 20;
constexpr int most_levels = 32;

/// Refuses what is nested too deeply, and a key that is there twice, while the text is parsed.
class Limits {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    too_deep_ = too_deep_ || depth > most_levels;
    if (event == Event::object_start) {
      keys_.emplace_back();
    } else if (event == Event::object_end && !keys_.empty()) {
      keys_.pop_back();
    } else if (event == Event::key && !keys_.empty()) {
      const auto key = parsed.get<std::string>();
      if (!keys_.back().insert(key).second && duplicate_.empty()) {
        duplicate_ = key;
      }
    }
    return !too_deep_;
  }
  bool is_too_deep() const { return too_deep_; }
  std::string fault() const {
    return too_deep_             ? fmt::format("is nested more than {} levels deep", most_levels)
           : !duplicate_.empty() ? fmt::format("has the key `{}` twice", duplicate_)
                                 : "";
  }

 private:
  std::vector<std::set<std::string>> keys_;
  bool too_deep_ = false;
  std::string duplicate_;
};

PlainValue plain_from(const json& value, const JsonPlaces& places, JsonPlaces::Path& path) {
  PlainValue plain;
  plain.place = places.of_value(path);
  if (value.is_boolean()) {
    plain.value = value.get<bool>();
  } else if (value.is_number_integer()) {
    plain.value = value.get<int64_t>();
  } else if (value.is_number()) {
    plain.value = value.get<double>();
  } else if (value.is_string()) {
    plain.value = value.get<std::string>();
  } else if (value.is_array()) {
    PlainValue::List list;
    for (const json& each : value) {
      list.push_back(plain_from(each, places, path));
    }
    plain.value = std::move(list);
  } else if (value.is_object()) {
    PlainValue::Map map;
    for (const auto& [key, each] : value.items()) {
      path.push_back(key);
      map.push_back({key, plain_from(each, places, path), places.of_key(path)});
      path.pop_back();
    }
    plain.value = std::move(map);
  }
  return plain;
}

// " (line 3, column 7)", where the parser knows it.
std::string place_in(const std::string& text, const json::exception& error) {
  const auto* at = dynamic_cast<const json::parse_error*>(&error);
  if (at == nullptr || at->byte == 0) {
    return "";
  }
  const std::string_view before = std::string_view(text).substr(0, at->byte - 1);
  const size_t line_begin = before.rfind('\n') + 1;  // 0 in the first line
  return fmt::format(" (line {}, column {})", std::ranges::count(before, '\n') + 1,
                     before.size() - line_begin + 1);
}

/// What the text holds, or why it holds nothing that can be used.
struct Parsed {
  json value{};
  std::string fault{};
  bool is_json = false;  ///< of few levels, whatever else is wrong
};

Parsed parsed_from(const std::string& text) {
  Limits limits;
  Parsed parsed;
  try {
    parsed.value = json::parse(text, std::ref(limits));
    parsed.fault = limits.fault();
    parsed.is_json = !limits.is_too_deep();
    if (parsed.fault.empty() && !parsed.value.is_object()) {
      parsed.fault = "holds no JSON object";
    }
  } catch (const json::exception& error) {
    parsed.fault = limits.fault();
    if (parsed.fault.empty()) {
      parsed.fault = "is not JSON" + place_in(text, error);
    }
  }
  return parsed;
}

}  // namespace

std::optional<PlainValue> ConfigFiles::read_object(const std::string& path,
                                                   const SourcePlace& place, const Kind& kind) {
  const std::string name = (folder_ / path).lexically_normal().string();
  const auto fail = [&](const std::string& message, const std::string& remedy,
                        const std::optional<SourcePlace>& within = {}) {
    reader_.fail_at(within.value_or(place), fmt::format("{} {}", name, message), remedy);
    return std::nullopt;
  };
  const auto read = read_file_(name, most_bytes);
  if (const auto* error = std::get_if<FileError>(&read)) {
    reader_.fail_at(place, fmt::format("{}: {}", name, error->message),
                    "paths are relative to the scenario file");
    return std::nullopt;
  }
  // Errors in it are shown with their line.
  const std::string& text = loaded_.sources[name] = std::get<std::string>(read);
  if (text.size() > most_bytes) {
    return fail(fmt::format("has more than {} MiB", most_bytes >> 20),
                fmt::format("name the JSON file of {}", kind.what));
  }
  const Parsed parsed = parsed_from(text);
  if (!parsed.fault.empty()) {
    const std::optional<SourcePlace> repeated =
        parsed.is_json ? JsonPlaces(name, text).of_repeated_key() : std::nullopt;
    return fail(parsed.fault, fmt::format("{} is one JSON object, each key once", kind.what),
                repeated);
  }
  digest_ = digest_with(digest_, text);
  loaded_.files.push_back(name);
  JsonPlaces::Path keys;
  return plain_from(parsed.value, JsonPlaces(name, text), keys);
}

void ConfigFiles::read_model(ModelSpec& model) {
  if (model.hf) {
    const auto held =
        read_object(model.hf->value, model.hf->place, {"a configuration of Hugging Face"});
    const auto* map = held ? held->get_if<PlainValue::Map>() : nullptr;
    for (size_t i = 0; map != nullptr && i < map->size(); ++i) {
      const PlainEntry& entry = (*map)[i];
      model.config.push_back({entry.key, entry.value, model.hf->place});
    }
  }
  for (NamedModel& module : model.modules) {
    read_model(module.model);
  }
}

void ConfigFiles::read(Scenario& scenario, const std::filesystem::path& folder) {
  folder_ = folder;
  digest_ = scenario.digest;
  if (scenario.model) {
    read_model(*scenario.model);
  }
  if (scenario.trainer && scenario.trainer->strategy) {
    for (ObjectArgument& argument : scenario.trainer->strategy->arguments) {
      const std::string* path = argument.value.get_if<std::string>();
      if (argument.name != "config" || path == nullptr) {
        continue;
      }
      auto held = read_object(*path, argument.place, {"a configuration of DeepSpeed"});
      if (held) {
        held->place = argument.value.place;
        argument.value = std::move(*held);
      }
    }
  }
  scenario.digest = digest_;
}

}  // namespace lockstep
