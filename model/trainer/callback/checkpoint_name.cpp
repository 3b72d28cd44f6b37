#include "model/trainer/callback/checkpoint_name.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <variant>

namespace lockstep {

namespace {

using Number = std::variant<int64_t, double>;

Number number_of(const std::string& name, int64_t epoch, int64_t step,
                 const std::map<std::string, double>& metrics) {
  const auto logged = metrics.find(name);
  if (name == "epoch" || name == "step") {
    const int64_t own = name == "epoch" ? epoch : step;
    return logged == metrics.end() ? own : static_cast<int64_t>(logged->second);
  }
  return logged == metrics.end() ? Number(int64_t{0}) : Number(logged->second);
}

// Python writes 1.0 where fmt writes 1.
std::string plain(double value) {
  std::string text = fmt::format("{}", value);
  return std::isfinite(value) && text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string formatted(const Number& number, const std::string& specification) {
  const double* const real = std::get_if<double>(&number);
  if (specification.empty()) {
    return real != nullptr ? plain(*real) : fmt::format("{}", std::get<int64_t>(number));
  }
  const std::string pattern = "{:" + specification + "}";
  const bool wants_real =
      std::string_view("eEfFgG").find(specification.back()) != std::string_view::npos;
  try {
    if (real == nullptr && !wants_real) {
      return fmt::format(fmt::runtime(pattern), std::get<int64_t>(number));
    }
    return fmt::format(fmt::runtime(pattern),
                       real != nullptr ? *real : static_cast<double>(std::get<int64_t>(number)));
  } catch (const fmt::format_error& error) {
    throw std::invalid_argument(
        fmt::format("`{}` formats no such number: {}", specification, error.what()));
  }
}

}  // namespace

std::string CheckpointName::of(int64_t epoch, int64_t step,
                               const std::map<std::string, double>& metrics,
                               std::optional<int64_t> version) const {
  const std::string text = pattern.empty() ? "{epoch}-{step}" : pattern;
  std::string name;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text[at] == '{' ? text.find('}', at) : std::string::npos;
    if (end == std::string::npos) {
      name += text[at++];
      continue;
    }
    const std::string field = text.substr(at + 1, end - at - 1);
    const size_t colon = field.find(':');
    const std::string key = field.substr(0, colon);
    const std::string specification =
        colon == std::string::npos ? std::string() : field.substr(colon + 1);
    name += insert_metric_name ? key + "=" : "";
    name += formatted(number_of(key, epoch, step, metrics), specification);
    at = end + 1;
  }
  return version ? fmt::format("{}-v{}.ckpt", name, *version) : name + ".ckpt";
}

int64_t pickled_bytes_of_text(int64_t length) {
  constexpr int64_t longest_short_text = 255;  // its length is one byte, else four
  return length + (length <= longest_short_text ? 15 : 18);
}

}  // namespace lockstep
