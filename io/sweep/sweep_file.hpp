#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "io/sweep/sweep_row.hpp"

namespace lockstep {

/// The most cases of a sweep, and the most shards.
inline constexpr int64_t sweep_cases_max = 1'000'000;

/// What a sweep is: the first line of the file that holds its rows.
struct SweepHeader {
  std::string version;                           ///< of the program
  std::string scenario;                          ///< FILE or FILE:CASE
  std::string digest;                            ///< of the bytes of all files that the cases read
  std::vector<std::string> settings;             ///< of every case: KEY=VALUE
  std::vector<std::string> keys;                 ///< that differ
  std::vector<std::vector<std::string>> values;  ///< of each key; empty: the cases are a list
  std::string digest_of_cases;                   ///< of a list
  int64_t cases = 0;                             ///< in all shards
  int64_t shard = 1;
  int64_t shards = 1;
};

/// Whether the case of this number, from 1, belongs to the shard.
bool is_in_shard(const SweepHeader& header, int64_t number);

/// How two sweeps differ, shards aside: "the values of `trainer.devices` are 2, 4 there and 2, 8
/// here"; empty: not at all.
std::string difference_of(const SweepHeader& there, const SweepHeader& here);

/// One line of JSON each, without the line feed.
std::string line_of(const SweepHeader& header);
std::string line_of(const SweepRow& row);
/// What a line says, or what is wrong with it: of a first line "is not ..", which follows its name;
/// of a row "`case` is text, not a whole number".
std::variant<SweepHeader, std::string> header_of(const std::string& line);
std::variant<SweepRow, std::string> row_of(const std::string& line);

/// The rows that a file holds, as their lines.
struct SweepFile {
  std::optional<SweepHeader> header;     ///< none: the file is empty, or its first line is torn
  std::map<int64_t, std::string> lines;  ///< by number
  int64_t whole_bytes = 0;               ///< up to the end of the last complete line
  bool is_torn = false;                  ///< a last line without its end is left out
  bool is_in_order = true;               ///< the lines are those of `lines`, in their order
  std::string fault;                     ///< what is wrong, with the line; empty: nothing
};

/// Reads what was written so far. Duplicates of a row must be equal.
SweepFile read_sweep_file(const std::string& path);

}  // namespace lockstep
