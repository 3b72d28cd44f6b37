#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/json_text.hpp"
#include "model/strategy/argument_table.hpp"

namespace lockstep::cli {

/// Explanation of a key of the scenario format, or of a table of keys.
struct KeyPage {
  struct Key {
    std::string name;  ///< "devices"
    std::string type;  ///< "int"
    std::string default_text;
    std::string meaning;               ///< empty: an argument of the class itself, as its home says
    std::optional<ArgumentUse> use{};  ///< of an argument of a strategy
  };
  std::string name;                 ///< "trainer.devices", "trainer", "all_gather"
  std::string meaning;              ///< one line; empty: that of its keys
  std::vector<Key> keys;            ///< of a table and of a statement all, of a key itself
  bool is_modelled = true;          ///< false: a scenario that gives it is refused
  std::string scenario;             ///< the smallest that shows it; empty: none
  std::vector<std::string> facts;   ///< figures, a line each: of a layer in its example, a preset
  std::vector<std::string> others;  ///< a bare key of several tables: where it is
};

/// By "trainer.devices", "trainer", "fault.signal" or "signal", "all_gather", or a key alone.
std::optional<KeyPage> find_key_page(std::string_view name);
/// The tables and statements, in the order of the reference.
std::vector<std::string> key_page_names();
/// Every key of every table: "trainer.devices".
std::vector<std::string> all_key_names();

std::string text_of(const KeyPage& page);
Json json_of(const KeyPage& page);

}  // namespace lockstep::cli
