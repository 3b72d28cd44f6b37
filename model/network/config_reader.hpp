#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/network/argument_reader.hpp"
#include "model/network/config_networks.hpp"
#include "model/network/published.hpp"

namespace lockstep {

inline constexpr int64_t most_configured_layers = 10'000;

/// Reads keys, and stops at values that no network can have.
class ConfigReader {
 public:
  explicit ConfigReader(const LayerDescription& keys) : arguments_(keys, {}) {}

  int64_t size(std::string_view key, std::optional<int64_t> otherwise = std::nullopt) {
    const int64_t value = arguments_.integer(key, otherwise);
    if (arguments_.ok() && value < 1) {
      arguments_.complain(fmt::format("`{}` is {}", key, value),
                          fmt::format("write {} of at least 1", key));
    }
    return value;
  }
  int64_t layers(std::string_view key) {
    const int64_t value = size(key);
    if (arguments_.ok() && value > most_configured_layers) {
      arguments_.complain(fmt::format("`{}` is {}", key, value),
                          fmt::format("write at most {}", most_configured_layers));
    }
    return value;
  }
  void divides(int64_t part, int64_t whole, std::string_view key, std::string_view whole_key) {
    if (arguments_.ok() && whole % part != 0) {
      arguments_.complain(
          fmt::format("`{}` {} does not divide `{}` {}", key, part, whole_key, whole),
          fmt::format("choose {} that divides {}", key, whole_key));
    }
  }
  /// The one word that is modelled.
  void word(std::string_view key, std::string_view modelled) {
    const std::string value = arguments_.text(key, std::string(modelled));
    if (value != modelled) {
      arguments_.lack(fmt::format("`{}: {}` is not modelled yet", key, value),
                      fmt::format("`{}` is", modelled));
    }
  }
  void truth(std::string_view key, bool modelled) {
    if (arguments_.boolean(key, modelled) != modelled) {
      arguments_.lack(fmt::format("`{}: {}` is not modelled yet", key, !modelled),
                      fmt::format("`{}` is", modelled));
    }
  }
  ArgumentReader& arguments() { return arguments_; }
  bool ok() const { return arguments_.ok(); }

 private:
  ArgumentReader arguments_;
};

/// The keys that all configurations of Llama's kin have.
LlamaShape llama_shape(ConfigReader& config);

// Families; each gives an empty description where a key is wrong.
NetworkDescription describe_qwen3_config(ConfigReader& config, const ConfiguredSize& size);
NetworkDescription describe_gemma_config(ConfigReader& config, const ConfiguredSize& size);
NetworkDescription describe_bart_config(ConfigReader& config, const ConfiguredSize& size);
NetworkDescription describe_t5_config(ConfigReader& config, const ConfiguredSize& size);

}  // namespace lockstep
