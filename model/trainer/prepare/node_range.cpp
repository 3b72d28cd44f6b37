#include "model/trainer/prepare/node_range.hpp"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

namespace {

constexpr int64_t most_nodes_asked = 1'000'000;

std::optional<int64_t> node_count(std::string_view digits) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool good = error == std::errc() && end == digits.data() + digits.size() && value >= 1 &&
                    value <= most_nodes_asked;
  return good ? std::optional(value) : std::nullopt;
}

}  // namespace

// torch/distributed/run.py, parse_min_max_nnodes.
NodeRange node_range_of(const Object& launcher) {
  const PlainValue* const given = launcher.find("nnodes");
  if (given == nullptr) {
    return {};
  }
  if (const int64_t* const number = given->get_if<int64_t>()) {
    return {*number, *number, *number >= 1 && *number <= most_nodes_asked};
  }
  const std::string* const text = given->get_if<std::string>();
  if (text == nullptr) {
    return {1, 1, false};
  }
  const size_t colon = text->find(':');
  const std::string_view all = *text;
  const std::optional<int64_t> least = node_count(all.substr(0, colon));
  const std::optional<int64_t> most =
      colon == std::string::npos ? least : node_count(all.substr(colon + 1));
  if (!least || !most) {
    return {1, 1, false};
  }
  return {*least, *most, *least <= *most};
}

}  // namespace lockstep
