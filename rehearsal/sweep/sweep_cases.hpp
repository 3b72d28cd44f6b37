#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "io/sweep/sweep_file.hpp"
#include "rehearsal/exit_code.hpp"

namespace lockstep::cli {

/// Why a sweep cannot begin or go on; what() is "error: ..", with what to do in the next line.
class SweepError final : public std::runtime_error {
 public:
  SweepError(const std::string& message, const std::string& remedy, ExitCode code = ExitCode::usage)
      : std::runtime_error("error: " + message + (remedy.empty() ? "" : "\n   = " + remedy) + "\n"),
        code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// A key and the values that it takes, as texts of YAML.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;
};

/// The cases of a sweep: all combinations of some axes, or a list. Numbered from 1; of a grid the
/// last key changes fastest.
class SweepCases {
 public:
  static constexpr int64_t most = sweep_cases_max;

  /// `KEY=V1,V2` each; commas within brackets, braces and quotes do not separate.
  static SweepCases of_grid(const std::vector<std::string>& arguments);
  /// A CSV file: keys in the first line, a case in each other; an empty cell sets nothing.
  static SweepCases of_file(const std::string& path);

  int64_t count() const { return count_; }
  const std::vector<std::string>& keys() const { return keys_; }
  bool is_grid() const { return is_grid_; }
  /// Of each key the different values, in their order.
  const std::vector<std::vector<std::string>>& values() const { return values_; }
  /// The keys that a case sets, with their values.
  std::vector<std::pair<std::string, std::string>> values_of(int64_t number) const;
  std::vector<std::string> settings_of(int64_t number) const;
  /// Of each value of this key the first case that has it.
  std::vector<int64_t> first_with_each_value(size_t key) const;
  /// At most so many cases, spread over all that give this key this value.
  std::vector<int64_t> some_with(size_t key, size_t value, size_t wanted) const;
  /// Of all cells of a list.
  std::string digest_of_list() const;

 private:
  void check_keys(const std::string& option) const;
  size_t value_index(int64_t number, size_t key) const;

  bool is_grid_ = true;
  std::vector<std::string> keys_;
  std::vector<std::vector<std::string>> values_;
  std::vector<std::vector<size_t>> list_;  ///< of each case and key the index of its value
  int64_t count_ = 0;
};

/// A number as 16 hexadecimal digits.
std::string digest_text(uint64_t digest);

}  // namespace lockstep::cli
