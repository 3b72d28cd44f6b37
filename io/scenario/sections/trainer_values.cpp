#include "io/scenario/sections/trainer_values.hpp"

#include <algorithm>

namespace lockstep {

namespace {

// `3`, `auto`, `-1`, `1, 3`, `3,`: what some version of Lightning reads as a request.
bool names_devices(const std::string& text) {
  return text == "auto" || (text.find_first_not_of("0123456789-, \t") == std::string::npos &&
                            text.find_first_of("0123456789") != std::string::npos);
}

bool requests_devices(const PlainValue& value) {
  if (const auto* text = value.get_if<std::string>()) {
    return names_devices(*text);
  }
  if (const auto* list = value.get_if<PlainValue::List>()) {
    return std::ranges::all_of(
        *list, [](const PlainValue& item) { return item.get_if<int64_t>() != nullptr; });
  }
  return value.is_null() || value.get_if<int64_t>() != nullptr ||
         value.get_if<PlainValue::Map>() != nullptr;
}

template <class Accepts>
std::optional<PlainValue> read_checked(Reader& reader, const Node& node, const KeyRow& row,
                                       const Accepts& accepts, const char* expected,
                                       const char* remedy) {
  auto value = AnyForm::read(reader, node, row);
  if (value && !accepts(*value)) {
    reader.fail_type(node, row.key, expected, remedy);
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<PlainValue> DevicesForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  return read_checked(reader, node, row, requests_devices,
                      "a number, `auto`, numbers with commas or a list of whole numbers",
                      "write 8, or [0, 1] to name them");
}

std::optional<PlainValue> BatchesForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  const auto is_number = [](const PlainValue& value) {
    return value.is_null() || value.number().has_value();
  };
  return read_checked(reader, node, row, is_number, "an int or a float",
                      "an int is a number of batches, a float from 0.0 to 1.0 a part of them");
}

// Python takes 0 and 1 for a bool.
std::optional<PlainValue> WarnForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  const auto is_word = [](const PlainValue& value) {
    const auto* text = value.get_if<std::string>();
    return text != nullptr ? *text == "warn"
                           : value.is_null() || value.get_if<bool>() != nullptr ||
                                 value.get_if<int64_t>() != nullptr;
  };
  return read_checked(reader, node, row, is_word, "a bool or `warn`", "write true, false or warn");
}

std::optional<PlainValue> SwitchForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  const auto is_switch = [](const PlainValue& value) {
    return value.is_null() || value.get_if<bool>() != nullptr || value.get_if<int64_t>() != nullptr;
  };
  return read_checked(reader, node, row, is_switch, "a bool or an int",
                      "write true for one batch, or how many");
}

}  // namespace lockstep
