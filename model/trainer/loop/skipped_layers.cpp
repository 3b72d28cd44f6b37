#include "model/trainer/loop/skipped_layers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "model/core/failure.hpp"
#include "model/core/spelling.hpp"
#include "model/network/sizes_without_layers.hpp"
#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

template <class Matches>
std::vector<size_t> layers_that(const Network& network, const Matches& matches) {
  std::vector<size_t> found;
  for (size_t layer = 0; layer < network.layers.size(); ++layer) {
    if (matches(std::string_view(network.layers[layer].name))) {
      found.push_back(layer);
    }
  }
  return found;
}

// A layer by its whole name ("encoder.fc"), by that within the module that runs, a container with
// all that it holds, or by the last part of the name.
std::vector<size_t> layers_named(const Statement& statement, const std::string& name,
                                 const Network& network) {
  std::vector<std::string> wholes = {name};
  if (statement.modules) {
    for (const std::string& module : statement.modules->value) {
      wholes.push_back(module + "." + name);
    }
  }
  for (const std::string& whole : wholes) {
    const std::vector<size_t> found = layers_that(network, [&](std::string_view layer) {
      return layer == whole || layer.starts_with(whole + ".");
    });
    if (!found.empty()) {
      return found;
    }
  }
  return layers_that(network, [&](std::string_view layer) { return layer.ends_with("." + name); });
}

// "extra, head, .."
std::string some_layers(const std::vector<std::string_view>& layers) {
  constexpr size_t shown = 4;
  const std::vector<std::string_view> few(
      layers.begin(), layers.begin() + static_cast<int64_t>(std::min(layers.size(), shown)));
  return fmt::format("{}{}", fmt::join(few, ", "), layers.size() > shown ? ", .." : "");
}

// The names of those among the layers that are no ends of a residual.
std::vector<std::string_view> names_to_skip(const Network& network,
                                            const std::vector<size_t>& layers) {
  std::vector<std::string_view> names;
  for (const size_t layer : layers) {
    if (!is_marker(network.layers[layer].kind)) {
      names.emplace_back(network.layers[layer].name);
    }
  }
  return names;
}

[[noreturn]] void fail_without_layer(const Placed<std::string>& name, const Statement& statement,
                                     const Network& network) {
  const std::vector<std::string_view> names =
      names_to_skip(network, layers_that(network, [](std::string_view) { return true; }));
  const std::string near = did_you_mean(name.value, names);
  throw ProgramException(
      site_of(statement),
      fmt::format("forward cannot skip `{}`: no layer of the model has this name; {}", name.value,
                  near.empty() ? "the layers are " + some_layers(names) : near));
}

// The ends of a residual cannot be left out: what stands between them would lose its skip
// connection.
void check_no_end(const Placed<std::string>& name, const std::vector<size_t>& found,
                  const Statement& statement, const Network& network) {
  const std::vector<std::string_view> others = names_to_skip(network, found);
  if (others.size() == found.size()) {
    return;
  }
  throw ProgramException(
      site_of(statement),
      fmt::format("forward cannot skip `{}`: a Residual's shortcut and its addition always run; "
                  "skip layers and Sequentials, here {}",
                  name.value, some_layers(others)));
}

// What comes before a layer that is left out must fit what comes behind it.
void check_sizes(const std::vector<size_t>& skipped, const std::vector<size_t>& modules,
                 const Statement& statement, const Network& network, RankLog& log) {
  if (skipped.empty()) {
    return;
  }
  const auto conflict = size_conflict_without(network, skipped, modules);
  if (!conflict) {
    return;
  }
  const std::string message =
      fmt::format("forward cannot run without {}: {}", some_layers(names_to_skip(network, skipped)),
                  conflict->message);
  const std::string remedy =
      "skip layers that give what they take in size, one or several in a row";
  if (conflict->raises) {
    throw ProgramException(site_of(statement), message + "; " + remedy);
  }
  lack_at(log, site_of(statement), message + ", and this is not modelled", remedy);
}

}  // namespace

std::vector<size_t> skipped_layers(const Statement& statement, const Network& network,
                                   const std::vector<size_t>& modules, RankLog& log) {
  std::vector<size_t> skipped;
  for (const Placed<std::string>& name : statement.skip) {
    const std::vector<size_t> found = layers_named(statement, name.value, network);
    if (found.empty()) {
      fail_without_layer(name, statement, network);
    }
    check_no_end(name, found, statement, network);
    skipped.insert(skipped.end(), found.begin(), found.end());
  }
  std::ranges::sort(skipped);
  skipped.erase(std::unique(skipped.begin(), skipped.end()), skipped.end());
  check_sizes(skipped, modules, statement, network, log);
  return skipped;
}

}  // namespace lockstep
