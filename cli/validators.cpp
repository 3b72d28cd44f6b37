#include "cli/validators.hpp"

#include <fmt/format.h>

#include <limits>

#include "cli/step_range.hpp"
#include "io/expression/quantity.hpp"
#include "io/scenario/reader/scalar.hpp"

namespace lockstep::cli {

CLI::Validator whole_number(int64_t least, int64_t most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        const auto number = parse_int(text);
        const auto* value = std::get_if<int64_t>(&number);
        if (value != nullptr && *value >= least && *value <= most) {
          return std::string();
        }
        const bool bounded = most < std::numeric_limits<int64_t>::max();
        return fmt::format("takes a whole number from {}{}, not `{}`", least,
                           bounded ? fmt::format(" to {}", most) : " on", text);
      },
      "");
}

CLI::Validator positive_seconds() {
  return CLI::Validator(
      [](const std::string& text) {
        const auto number = parse_float(text);
        const auto* value = std::get_if<double>(&number);
        return value != nullptr && *value > 0
                   ? std::string()
                   : fmt::format("takes seconds above 0, such as 2.5, not `{}`", text);
      },
      "");
}

CLI::Validator seconds_between(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        const auto number = parse_float(text);
        const auto* value = std::get_if<double>(&number);
        return value != nullptr && *value >= least && *value <= most
                   ? std::string()
                   : fmt::format("takes seconds from {} to {}, not `{}`", least, most, text);
      },
      "");
}

CLI::Validator memory_size() {
  return CLI::Validator(
      [](const std::string& text) {
        const auto size = parse_bytes(text);
        const auto* value = std::get_if<Bytes>(&size);
        return value != nullptr && *value > Bytes()
                   ? std::string()
                   : fmt::format("takes a size above 0, such as 8GiB, not `{}`", text);
      },
      "");
}

CLI::Validator step_range() {
  return CLI::Validator(
      [](const std::string& text) {
        return step_range_of(text) ? std::string()
                                   : fmt::format(
                                         "takes a step or a first and a last one, numbered "
                                         "from 0, such as 5000-5010, not `{}`",
                                         text);
      },
      "");
}

}  // namespace lockstep::cli
