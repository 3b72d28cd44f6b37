// `sweep --merge`: the rows that shards left become one sweep.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "cli/commands/sweep_output.hpp"
#include "rehearsal/run/output.hpp"
#include "rehearsal/sweep/sweep_cases.hpp"
#include "rehearsal/sweep/sweep_log.hpp"

namespace lockstep::cli {

namespace {

/// The shards that were read, and all their rows.
struct Merged {
  SweepHeader header;
  std::string first_file;
  std::map<int64_t, std::string> files;  ///< by shard
  std::map<int64_t, std::string> lines;
};

SweepFile read_shard_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw SweepError(fmt::format("{}: file not found", path), "", ExitCode::bad_input);
  }
  SweepFile file = read_sweep_file(path);
  if (!file.fault.empty()) {
    throw SweepError(fmt::format("{}: {}", path, file.fault),
                     "name files that `lockstep sweep --out` wrote", ExitCode::damaged_file);
  }
  if (!file.header) {
    throw SweepError(
        fmt::format("{} {}", path, file.is_torn ? "ends within its first line" : "is empty"),
        "run its shard again with --resume", ExitCode::bad_input);
  }
  return file;
}

void add_file(const std::string& path, Merged& merged) {
  const SweepFile file = read_shard_file(path);
  if (merged.first_file.empty()) {
    merged.header = *file.header;
    merged.first_file = path;
  }
  if (const std::string differs = difference_of(*file.header, merged.header); !differs.empty()) {
    throw SweepError(
        fmt::format("{} and {} are of different sweeps: {}", path, merged.first_file, differs),
        "\"there\" is the former; merge the shards of one sweep", ExitCode::bad_input);
  }
  if (file.header->shards != merged.header.shards) {
    throw SweepError(fmt::format("{} is one of {} shards, and {} is one of {}", path,
                                 file.header->shards, merged.first_file, merged.header.shards),
                     "merge the shards of one division", ExitCode::bad_input);
  }
  merged.files.emplace(file.header->shard, path);
  for (const auto& [number, line] : file.lines) {
    const auto [known, is_new] = merged.lines.try_emplace(number, line);
    if (!is_new && known->second != line) {
      throw SweepError(fmt::format("{} and {} differ in case {}", path,
                                   merged.files.at(file.header->shard), number),
                       "name each shard once", ExitCode::bad_input);
    }
  }
}

void check_shards(const Merged& merged) {
  std::vector<std::string> missing;
  int64_t count = 0;
  for (int64_t shard = 1; shard <= merged.header.shards; ++shard) {
    if (!merged.files.contains(shard)) {
      ++count;
      if (missing.size() < 10) {
        missing.push_back(fmt::format("{}/{}", shard, merged.header.shards));
      }
    }
  }
  if (count > 0) {
    throw SweepError(fmt::format("{} missing: {}{}", count == 1 ? "a shard is" : "shards are",
                                 fmt::join(missing, ", "), count > 10 ? ", .." : ""),
                     "run it with --shard and --out, and name its file too", ExitCode::bad_input);
  }
}

void check_cases(const Merged& merged) {
  SweepHeader shard = merged.header;
  for (const auto& [index, path] : merged.files) {
    shard.shard = index;
    int64_t missing = 0;
    for (int64_t number = index; number <= shard.cases; number += shard.shards) {
      missing += merged.lines.contains(number) ? 0 : 1;
    }
    if (missing > 0) {
      throw SweepError(
          fmt::format("{} lacks {} cases of shard {}/{}", path, missing, index, shard.shards),
          "run the command of this shard again with --resume", ExitCode::bad_input);
    }
  }
}

// The values of each key, in the order in which they come.
std::vector<std::vector<std::string>> values_of(const Merged& merged) {
  if (!merged.header.values.empty()) {
    return merged.header.values;
  }
  std::vector<std::vector<std::string>> values(merged.header.keys.size());
  for (const auto& [number, line] : merged.lines) {
    for (const auto& [key, text] : shown_row(line).values) {
      const auto at = std::ranges::find(merged.header.keys, key) - merged.header.keys.begin();
      values[static_cast<size_t>(at)].push_back(text);
    }
  }
  return values;
}

void refuse_running_options(const SweepRequest& request) {
  for (const auto& [name, given] : {std::pair("--vary", !request.vary.empty()),
                                    {"--vary-file", !request.vary_file.empty()},
                                    {"--shard", !request.shard.empty()},
                                    {"--resume", request.resume}}) {
    if (given) {
      throw SweepError(fmt::format("--merge runs nothing, so it takes no {}", name),
                       "name the files of the shards alone");
    }
  }
}

}  // namespace

Answer merge_sweeps(const Request& request, const Style& style) {
  refuse_running_options(request.sweep);
  Merged merged;
  for (const std::string& path : request.arguments) {
    add_file(path, merged);
  }
  check_shards(merged);
  check_cases(merged);
  merged.header.shard = 1;
  merged.header.shards = 1;
  const SweepOutput output(request, merged.header, values_of(merged));
  if (!request.sweep.rows.empty()) {
    write_atomically(request.sweep.rows, sweep_text(merged.header, merged.lines));
  }
  Answer answer;
  output.add(merged.lines, true, style, answer);
  return answer;
}

}  // namespace lockstep::cli
