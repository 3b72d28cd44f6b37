#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/strategy/arguments.hpp"

namespace lockstep {

/// What becomes of an argument that a scenario gives.
enum class ArgumentUse : uint8_t {
  strategy,    ///< the strategy is made with it
  trainer,     ///< read before the strategy is made: how processes start and what they talk by
  no_effect,   ///< taken; nothing that is modelled depends on it
  unmodelled,  ///< refused, unless it has its default
  by_name,     ///< no scenario writes it: a name that Lightning registers stands for it
};

/// One argument of a strategy's class: the only place that says its type and its default. The
/// grammar of scenarios, `explain`, the JSON Schema and the strategy itself read it here.
struct StrategyArgument {
  std::string_view name;
  std::string_view type{};          ///< as in io/scenario/classes; empty: any
  std::string_view default_text{};  ///< as a scenario would write it; empty: not known
  std::string_view meaning{};       ///< one plain line
  ArgumentUse use = ArgumentUse::strategy;
  std::string_view default_in_words{};  ///< what `null` stands for, or what the default depends on

  /// Of which only the name is known. Implicit: a list of names is a list of arguments.
  constexpr StrategyArgument(const char* own_name) : name(own_name) {}
  constexpr StrategyArgument(std::string_view own_name, std::string_view own_type,
                             std::string_view own_default, std::string_view own_meaning,
                             ArgumentUse own_use = ArgumentUse::strategy,
                             std::string_view in_words = "")
      : name(own_name),
        type(own_type),
        default_text(own_default),
        meaning(own_meaning),
        use(own_use),
        default_in_words(in_words) {}

  /// As a page shows it.
  constexpr std::string_view shown_default() const {
    return default_in_words.empty() ? default_text : default_in_words;
  }
  constexpr StrategyArgument with_use(ArgumentUse another) const {
    return {name, type, default_text, meaning, another, default_in_words};
  }
  constexpr StrategyArgument with_default(std::string_view text,
                                          std::string_view in_words = "") const {
    return {name, type, text, meaning, use, in_words};
  }
};

using ArgumentRows = std::span<const StrategyArgument>;

/// Null when it is not among them.
constexpr const StrategyArgument* find_argument(ArgumentRows rows, std::string_view name) {
  for (const StrategyArgument& row : rows) {
    if (row.name == name) {
      return &row;
    }
  }
  return nullptr;
}

/// The value that the text of the default stands for; nothing: it has no text, or not one of its
/// type.
std::optional<StrategyArguments::Value> default_of(const StrategyArgument& argument);

/// Reads arguments with the defaults of their rows. Where that is `null`, it is false, 0 or "".
class StrategyArgumentReader {
 public:
  /// Both outlive the reader.
  StrategyArgumentReader(const StrategyArguments& given, ArgumentRows rows)
      : given_(given), rows_(rows) {}

  bool boolean(const std::string& name) const;
  int64_t integer(const std::string& name) const;
  const StrategyArguments& given() const { return given_; }
  double number(const std::string& name) const;
  std::string text(const std::string& name) const;

 private:
  StrategyArguments with_default(const std::string& name) const;

  const StrategyArguments& given_;
  ArgumentRows rows_;
};

// Of most strategies of Lightning.
inline constexpr StrategyArgument process_group_backend{
    "process_group_backend",           "text", "null", "nccl, gloo or mpi", ArgumentUse::trainer,
    "null: nccl on GPUs, gloo on CPUs"};
inline constexpr StrategyArgument process_group_timeout{
    "timeout", "", "30 min",
    "how long a collective may take: 30 min, or {timedelta: {minutes: 30}}", ArgumentUse::trainer};

}  // namespace lockstep
