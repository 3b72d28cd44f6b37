// `explain`: the page of a name, and what names there are.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <vector>

#include "cli/commands/commands.hpp"
#include "explain/explain.hpp"
#include "explain/explain_arguments.hpp"
#include "explain/explain_classes.hpp"
#include "explain/explain_codes.hpp"
#include "explain/explain_guides.hpp"
#include "explain/explain_keys.hpp"
#include "explain/explain_presets.hpp"
#include "explain/explain_tables.hpp"
#include "io/scenario/classes/other_classes.hpp"
#include "io/scenario/names/spelling.hpp"
#include "io/schema/schema.hpp"
#include "model/cluster/presets.hpp"
#include "model/network/presets.hpp"
#include "rehearsal/text/wrapped_text.hpp"

namespace lockstep::cli {

namespace {

std::string list_of(std::span<const Page> pages) {
  std::string out;
  for (const Page& page : pages) {
    out += fmt::format("  {:<22} {}\n", page.name, page.title);
  }
  return out;
}

std::string lines_of(const std::vector<std::string>& names) {
  constexpr size_t width = 88;
  return fmt::format("  {}\n",
                     fmt::join(wrapped(fmt::to_string(fmt::join(names, " ")), width), "\n  "));
}

std::string overview() {
  return "Findings\n" + list_of(hang_pages()) + list_of(value_pages()) + list_of(metric_pages()) +
         list_of(setup_pages()) + "\nResults that expectations name\n" + list_of(result_pages()) +
         "\nWhat scripts call or override beside the Trainer\n" + list_of(script_pages()) +
         "\nKeys of a scenario (trainer.devices, ..), hooks (program.setup, ..), and statements\n" +
         lines_of(key_page_names()) +
         "\nClasses (EarlyStopping, SGD, Conv2d, torchrun, ..) and presets (dgx-a100, gpt2, ..) by "
         "name, and what\nscenarios add to classes\n" +
         lines_of(added_argument_names()) +
         "\nReleases that are followed, and what scripts call for a strategy\n" +
         lines_of(argument_page_names()) +
         "\n  presets                known clusters, GPUs and models\n"
         "  guides                 common claims in multi-GPU guides, checked\n"
         "\nlockstep explain NAME shows a page.\n";
}

std::string also_called(std::span<const PresetAlias> aliases) {
  std::vector<std::string> pairs;
  for (const PresetAlias& alias : aliases) {
    pairs.push_back(fmt::format("{} ({})", alias.alias, alias.name));
  }
  return fmt::format("  also called: {}\n",
                     fmt::join(wrapped(fmt::to_string(fmt::join(pairs, ", ")), 85), "\n    "));
}

std::string presets() {
  std::string out = "Clusters (cluster.preset); one node each, cluster.nodes adds more\n";
  for (const Cluster& cluster : cluster_presets()) {
    out += fmt::format("  {:<16} {} x {}; {}\n", cluster.name, cluster.node.devices,
                       cluster.node.device.name, cluster.node.source);
  }
  out += also_called(cluster_aliases());
  out += "\nGPUs (cluster.gpu.preset)\n";
  for (const DeviceModel& device : device_presets()) {
    out += fmt::format("  {:<16} {:.0f} GiB, {:.0f} GB/s; {}\n", device.name,
                       static_cast<double>(device.memory.count()) / 1073741824.0,
                       static_cast<double>(device.memory_bandwidth.count()) * 1e-9, device.source);
  }
  out += also_called(device_aliases());
  out += "\nModels (model.preset), and the shape arguments that each takes\n";
  for (const NetworkPreset& network : network_presets()) {
    out += fmt::format("  {:<16} {} ({}){}{}\n", network.name, network.summary,
                       fmt::join(network.arguments, ", "), network.source.empty() ? "" : "; ",
                       network.source);
  }
  out += also_called(network_aliases());
  out += "\nExisting ones that are not modelled (exit 5, with the nearest one that is)\n";
  std::vector<std::string> others;
  for (const auto names : {unmodelled_clusters(), unmodelled_devices(), unmodelled_networks()}) {
    for (const UnmodelledPreset& other : names) {
      others.emplace_back(other.name);
    }
  }
  return out + lines_of(others) +
         "\nCapitals, hyphens, underscores and dots in these names do not matter.\n";
}

std::vector<std::string_view> all_names() {
  std::vector<std::string_view> names = {"presets", "guides", "codes"};
  for (const auto pages : {hang_pages(), value_pages(), metric_pages(), setup_pages(),
                           result_pages(), script_pages()}) {
    for (const Page& page : pages) {
      names.push_back(page.name);
    }
  }
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all = key_page_names();
    std::ranges::move(all_key_names(), std::back_inserter(all));
    for (const ObjectRole role : explained_roles()) {
      for (const std::string_view known : known_classes(role)) {
        all.emplace_back(known);
      }
    }
    std::ranges::move(preset_page_names(), std::back_inserter(all));
    std::ranges::move(added_argument_names(), std::back_inserter(all));
    std::ranges::move(argument_page_names(), std::back_inserter(all));
    return all;
  }();
  names.insert(names.end(), keys.begin(), keys.end());
  return names;
}

Answer unknown(const std::string& what, std::string_view name,
               const std::vector<std::string_view>& names) {
  const std::string remedy = spelling_remedy(name, names);
  return {"",
          fmt::format("error: {}\n   = {}\n", what,
                      remedy.empty() ? "`lockstep explain` lists all" : remedy),
          ExitCode::usage};
}

Answer guides(const Request& request) {
  const bool json = request.format == Format::json;
  if (request.arguments.size() == 1) {
    return {json ? text_of(guides_json()) : guides_text(), "", ExitCode::ok};
  }
  const GuideClaim* claim = find_guide_claim(request.arguments[1]);
  if (claim == nullptr) {
    std::vector<std::string_view> names;
    for (const GuideClaim& known : guide_claims()) {
      names.push_back(known.name);
    }
    return unknown(fmt::format("there is no claim `{}`", request.arguments[1]),
                   request.arguments[1], names);
  }
  return {json ? text_of(guide_json(*claim)) : guide_text(*claim), "", ExitCode::ok};
}

std::string text_of_page(const Page& page) {
  std::string text = fmt::format("{}: {}\n\n{}", page.name, page.title, page.text.substr(1));
  if (!page.scenario.empty()) {
    text += fmt::format("\nExample (`lockstep verify FILE` finds {})\n{}", page.name,
                        page.scenario.substr(1));
  }
  return text;
}

Json answer_json() { return {{"schema_version", schema_version}, {"command", "explain"}}; }

Json json_of(const Page& page) {
  Json json = answer_json();
  json["name"] = page.name;
  json["title"] = page.title;
  json["text"] = page.text.substr(1);
  json["scenario"] = page.scenario.empty() ? Json() : Json(page.scenario.substr(1));
  return json;
}

Json overview_json() {
  Json json = answer_json();
  json["pages"] = Json::array();
  for (const std::string_view name : all_names()) {
    json["pages"].push_back(name);
  }
  return json;
}

Json presets_json() {
  Json json = answer_json();
  json["clusters"] = Json::array();
  for (const Cluster& cluster : cluster_presets()) {
    json["clusters"].push_back({{"name", cluster.name},
                                {"gpus", cluster.node.devices},
                                {"gpu", cluster.node.device.name},
                                {"source", cluster.node.source}});
  }
  json["gpus"] = Json::array();
  for (const DeviceModel& device : device_presets()) {
    json["gpus"].push_back({{"name", device.name},
                            {"memory_bytes", device.memory.count()},
                            {"memory_bandwidth_bytes_per_s", device.memory_bandwidth.count()},
                            {"source", device.source}});
  }
  json["models"] = Json::array();
  for (const NetworkPreset& network : network_presets()) {
    json["models"].push_back({{"name", network.name},
                              {"summary", network.summary},
                              {"arguments", network.arguments},
                              {"source", network.source}});
  }
  return json;
}

}  // namespace

std::string upper_case(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return text;
}

Answer explain_command(const Request& request) {
  const bool json = request.format == Format::json;
  if (request.arguments.empty()) {
    return {json ? text_of(overview_json()) : overview(), "", ExitCode::ok};
  }
  const std::string& name = request.arguments.front();
  if (name == "guides") {
    return guides(request);
  }
  if (request.arguments.size() > 1) {
    return unknown("only `guides` takes a second name", "", {});
  }
  if (name == "presets") {
    return {json ? text_of(presets_json()) : presets(), "", ExitCode::ok};
  }
  if (name == "codes") {
    return {json ? text_of(codes_json()) : codes_text(), "", ExitCode::ok};
  }
  const Page* page = find_page(name);
  if (page == nullptr) {
    page = find_page(upper_case(name));  // ls101
  }
  if (page == nullptr) {
    std::optional<KeyPage> key = find_key_page(name);
    if (!key) {
      key = find_argument_page(name);
    }
    if (!key) {
      key = find_class_page(name);
    }
    if (!key) {
      key = find_preset_page(name);
    }
    if (key) {
      return {json ? text_of(json_of(*key)) : text_of(*key), "", ExitCode::ok};
    }
    return unknown(fmt::format("there is no page `{}`", name), name, all_names());
  }
  return {json ? text_of(json_of(*page)) : text_of_page(*page), "", ExitCode::ok};
}

Answer schema_command() { return {json_schema(), "", ExitCode::ok}; }

}  // namespace lockstep::cli
