#pragma once

#include <span>
#include <string_view>

namespace lockstep::cli {

/// `table.key: value` in the smallest scenario around it, with `more` lines. Without a value,
/// `more` has the key itself.
struct KeyExample {
  std::string_view table;
  std::string_view key;
  std::string_view value;
  std::string_view more{};
};
std::span<const KeyExample> key_examples();

/// "model.compile" ..: read, and refused where they are given (exit 5).
std::span<const std::string_view> keys_not_modelled();

struct FaultExample {
  std::string_view kind;
  std::string_view arguments;  ///< "{rank: 1, at: step 2}"
  bool lasts = false;          ///< takes `for`
  std::string_view more{};
};
std::span<const FaultExample> fault_examples();

struct StatementExample {
  std::string_view name;
  std::string_view program;  ///< hooks and their statements, indented by two
  bool bare = false;         ///< on two ranks without a trainer
  std::string_view more{};
};
std::span<const StatementExample> statement_examples();

}  // namespace lockstep::cli
