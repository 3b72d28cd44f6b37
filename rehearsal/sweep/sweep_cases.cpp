#include "rehearsal/sweep/sweep_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "io/scenario/load/digest.hpp"
#include "io/scenario/load/load.hpp"
#include "rehearsal/sweep/csv_cells.hpp"

namespace lockstep::cli {

namespace {

constexpr size_t file_bytes_max = size_t{256} << 20;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

std::string without_blanks(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// `ddp,{FSDPStrategy: {a: 1, b: 2}}` has two parts.
std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = '\0';
  for (const char letter : text) {
    if (quote != '\0') {
      quote = letter == quote ? '\0' : quote;
    } else if (letter == '\'' || letter == '"') {
      quote = letter;
    } else if (letter == '[' || letter == '{' || letter == '(') {
      ++depth;
    } else if (letter == ']' || letter == '}' || letter == ')') {
      --depth;
    } else if (letter == ',' && depth == 0) {
      parts.emplace_back();
      continue;
    }
    parts.back() += letter;
  }
  std::ranges::transform(parts, parts.begin(), without_blanks);
  return parts;
}

SweepAxis axis_of(const std::string& argument) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == argument.size()) {
    throw SweepError(fmt::format("`--vary {}` has no {}", argument, equals == 0 ? "key" : "values"),
                     "write --vary trainer.devices=2,4,8");
  }
  SweepAxis axis{argument.substr(0, equals), split_values(argument.substr(equals + 1))};
  for (size_t index = 0; index < axis.values.size(); ++index) {
    const std::string& value = axis.values[index];
    if (value.empty()) {
      throw SweepError(fmt::format("--vary {}: value {} of {} is empty", axis.key, index + 1,
                                   axis.values.size()),
                       "remove the comma, or write null for the default");
    }
    if (std::find(axis.values.begin(), axis.values.begin() + static_cast<std::ptrdiff_t>(index),
                  value) != axis.values.begin() + static_cast<std::ptrdiff_t>(index)) {
      throw SweepError(fmt::format("--vary {}: the value {} is there twice", axis.key, value),
                       "remove one");
    }
  }
  return axis;
}

void check_count(int64_t count, const std::string& what) {
  if (count > SweepCases::most) {
    throw SweepError(
        fmt::format("{} gives more than {} cases, the most of one sweep", what, SweepCases::most),
        "vary fewer keys or values, or make several sweeps");
  }
}

}  // namespace

std::string digest_text(uint64_t digest) { return fmt::format("{:016x}", digest); }

SweepCases SweepCases::of_grid(const std::vector<std::string>& arguments) {
  SweepCases cases;
  cases.count_ = 1;
  for (const std::string& argument : arguments) {
    SweepAxis axis = axis_of(argument);
    cases.count_ *= static_cast<int64_t>(axis.values.size());
    check_count(cases.count_, "--vary");
    cases.keys_.push_back(std::move(axis.key));
    cases.values_.push_back(std::move(axis.values));
  }
  cases.check_keys("--vary");
  return cases;
}

SweepCases SweepCases::of_file(const std::string& path) {
  const std::string option = "--vary-file " + path;
  const auto read = read_file_from_disk(path, file_bytes_max);
  if (const auto* error = std::get_if<FileError>(&read)) {
    throw SweepError(fmt::format("{}: {}", option, error->message), "name a CSV file",
                     ExitCode::bad_input);
  }
  const std::string& text = std::get<std::string>(read);
  std::string fault = text.size() > file_bytes_max ? "is too large" : "";
  const size_t begin = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  const std::vector<CsvLine> lines =
      fault.empty() ? csv_cells(text.substr(begin), fault) : std::vector<CsvLine>();
  const char* how = "the first line names keys, every other is a case: trainer.devices,precision";
  if (fault.empty() && lines.size() < 2) {
    fault = "has no cases";
  }
  if (!fault.empty()) {
    throw SweepError(fmt::format("{}: {}", option, fault), how, ExitCode::bad_input);
  }
  check_count(static_cast<int64_t>(lines.size()) - 1, option);
  SweepCases cases;
  cases.is_grid_ = false;
  cases.keys_ = lines.front().cells;
  cases.values_.resize(cases.keys_.size());
  cases.check_keys(option);
  std::vector<std::map<std::string, size_t>> known(cases.keys_.size());
  for (auto line = lines.begin() + 1; line != lines.end(); ++line) {
    if (line->cells.size() != cases.keys_.size()) {
      throw SweepError(fmt::format("{}: line {} has {} cells, and there are {} keys", option,
                                   line->number, line->cells.size(), cases.keys_.size()),
                       "quote a cell with commas: \"[2,4]\"", ExitCode::bad_input);
    }
    std::vector<size_t>& indices = cases.list_.emplace_back();
    for (size_t key = 0; key < line->cells.size(); ++key) {
      std::vector<std::string>& values = cases.values_[key];
      const auto [found, is_new] = known[key].try_emplace(line->cells[key], values.size());
      if (is_new) {
        values.push_back(line->cells[key]);
      }
      indices.push_back(found->second);
    }
  }
  cases.count_ = static_cast<int64_t>(cases.list_.size());
  return cases;
}

void SweepCases::check_keys(const std::string& option) const {
  for (size_t index = 0; index < keys_.size(); ++index) {
    if (keys_[index].empty()) {
      throw SweepError(fmt::format("{}: key {} is empty", option, index + 1),
                       "write keys such as trainer.devices");
    }
    if (std::find(keys_.begin() + static_cast<std::ptrdiff_t>(index) + 1, keys_.end(),
                  keys_[index]) != keys_.end()) {
      throw SweepError(fmt::format("{}: the key `{}` is there twice", option, keys_[index]),
                       "give all its values at once: KEY=V1,V2");
    }
  }
}

size_t SweepCases::value_index(int64_t number, size_t key) const {
  if (!is_grid_) {
    return list_[static_cast<size_t>(number - 1)][key];
  }
  auto rest = static_cast<size_t>(number - 1);
  for (size_t later = keys_.size() - 1; later > key; --later) {
    rest /= values_[later].size();
  }
  return rest % values_[key].size();
}

std::vector<std::pair<std::string, std::string>> SweepCases::values_of(int64_t number) const {
  std::vector<std::pair<std::string, std::string>> all;
  for (size_t key = 0; key < keys_.size(); ++key) {
    const std::string& value = values_[key][value_index(number, key)];
    if (!value.empty()) {
      all.emplace_back(keys_[key], value);
    }
  }
  return all;
}

std::vector<std::string> SweepCases::settings_of(int64_t number) const {
  std::vector<std::string> settings;
  for (const auto& [key, value] : values_of(number)) {
    settings.push_back(key + "=" + value);
  }
  return settings;
}

std::vector<int64_t> SweepCases::first_with_each_value(size_t key) const {
  std::vector<int64_t> first(values_[key].size(), 0);
  size_t missing = first.size();
  for (int64_t number = 1; number <= count_ && missing > 0; ++number) {
    int64_t& found = first[value_index(number, key)];
    missing -= found == 0 ? 1 : 0;
    found = found == 0 ? number : found;
  }
  return first;
}

std::vector<int64_t> SweepCases::some_with(size_t key, size_t value, size_t wanted) const {
  std::vector<int64_t> numbers;
  for (int64_t number = 1; number <= count_; ++number) {
    if (value_index(number, key) == value) {
      numbers.push_back(number);
    }
  }
  std::vector<int64_t> spread;
  const size_t every = std::max<size_t>(1, numbers.size() / wanted);
  for (size_t index = 0; index < numbers.size() && spread.size() < wanted; index += every) {
    spread.push_back(numbers[index]);
  }
  return spread;
}

std::string SweepCases::digest_of_list() const {
  if (is_grid_) {
    return "";
  }
  uint64_t digest = 0;
  for (int64_t number = 1; number <= count_; ++number) {
    for (size_t key = 0; key < keys_.size(); ++key) {
      digest = digest_with(digest, values_[key][value_index(number, key)]);
    }
  }
  return digest_text(digest);
}

}  // namespace lockstep::cli
