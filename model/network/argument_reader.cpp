#include "model/network/argument_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep {

namespace {

/// Beyond any size of a tensor; keeps arithmetic on sizes within 64 bits.
constexpr int64_t greatest_integer = int64_t{1} << 40;

}  // namespace

ArgumentReader::ArgumentReader(const LayerDescription& description,
                               std::vector<std::string_view> positions)
    : description_(description), taken_(description.arguments.size(), false) {
  size_t position = 0;
  for (const NamedArgument& argument : description.arguments) {
    if (!argument.name.empty()) {
      names_.push_back(argument.name);
    } else {
      names_.push_back(position < positions.size() ? positions[position] : std::string_view());
      ++position;
    }
  }
}

bool ArgumentReader::has(std::string_view name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

const Argument* ArgumentReader::take(std::string_view name) {
  known_.push_back(name);
  const Argument* found = nullptr;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) {
      taken_[i] = true;
      if (found != nullptr) {
        complain(fmt::format("{} is given `{}` twice", description_.kind, name),
                 "keep one of them");
      }
      found = &description_.arguments[i].value;
    }
  }
  return found;
}

template <class T>
T ArgumentReader::missing(std::string_view name, const std::optional<T>& otherwise,
                          std::string_view what) {
  if (!otherwise) {
    complain(fmt::format("{} needs `{}`", description_.kind, name),
             fmt::format("give `{}` ({})", name, what));
  }
  return otherwise.value_or(T{});
}

void ArgumentReader::wrong_type(std::string_view name, std::string_view expected) {
  complain(fmt::format("`{}` of {} has the wrong type", name, description_.kind),
           fmt::format("write {}", expected));
}

/// `value` itself, or 0 with a complaint.
int64_t ArgumentReader::in_range(std::string_view name, int64_t value) {
  if (value >= -greatest_integer && value <= greatest_integer) {
    return value;
  }
  complain(fmt::format("`{}` of {} is {}", name, description_.kind, value),
           fmt::format("write a number up to {}", greatest_integer));
  return 0;
}

int64_t ArgumentReader::integer(std::string_view name, std::optional<int64_t> otherwise) {
  const Argument* value = take(name);
  if (value == nullptr) {
    return missing(name, otherwise, "an integer");
  }
  if (const auto* integer = std::get_if<int64_t>(value)) {
    return in_range(name, *integer);
  }
  wrong_type(name, "an integer");
  return otherwise.value_or(0);
}

double ArgumentReader::number(std::string_view name, double otherwise) {
  const Argument* value = take(name);
  if (value == nullptr) {
    return otherwise;
  }
  if (const auto* number = std::get_if<double>(value)) {
    return *number;
  }
  if (const auto* integer = std::get_if<int64_t>(value)) {
    return static_cast<double>(*integer);
  }
  wrong_type(name, "a number");
  return otherwise;
}

bool ArgumentReader::boolean(std::string_view name, bool otherwise) {
  const Argument* value = take(name);
  if (value == nullptr) {
    return otherwise;
  }
  if (const auto* boolean = std::get_if<bool>(value)) {
    return *boolean;
  }
  wrong_type(name, "true or false");
  return otherwise;
}

std::string ArgumentReader::text(std::string_view name, std::string otherwise) {
  const Argument* value = take(name);
  if (value == nullptr) {
    return otherwise;
  }
  if (const auto* text = std::get_if<std::string>(value)) {
    return *text;
  }
  wrong_type(name, "a text");
  return otherwise;
}

std::string ArgumentReader::word(std::string_view name, std::string otherwise) {
  const Argument* value = take(name);
  if (value == nullptr) {
    return otherwise;
  }
  if (const auto* boolean = std::get_if<bool>(value)) {
    return *boolean ? "true" : "false";
  }
  if (const auto* text = std::get_if<std::string>(value)) {
    return *text;
  }
  wrong_type(name, "true, false or a word");
  return otherwise;
}

Pair ArgumentReader::pair(std::string_view name, std::optional<Pair> otherwise) {
  const Argument* value = take(name);
  if (value == nullptr) {
    return missing(name, otherwise, "an integer or [height, width]");
  }
  if (const auto* integer = std::get_if<int64_t>(value)) {
    return {in_range(name, *integer), in_range(name, *integer)};
  }
  const auto* list = std::get_if<std::vector<int64_t>>(value);
  if (list != nullptr && list->size() == 2) {
    return {in_range(name, (*list)[0]), in_range(name, (*list)[1])};
  }
  wrong_type(name, "an integer or [height, width]");
  return otherwise.value_or(Pair{});
}

Shape ArgumentReader::shape(std::string_view name, std::optional<Shape> otherwise) {
  const Argument* value = take(name);
  if (value == nullptr) {
    return missing(name, otherwise, "a list of integers");
  }
  Shape sizes;
  if (const auto* integer = std::get_if<int64_t>(value)) {
    sizes = {*integer};
  } else if (const auto* list = std::get_if<std::vector<int64_t>>(value)) {
    sizes = *list;
  } else {
    wrong_type(name, "a list of integers");
    return otherwise.value_or(Shape{});
  }
  if (std::all_of(sizes.begin(), sizes.end(),
                  [](int64_t size) { return size > 0 && size <= greatest_integer; })) {
    return sizes;
  }
  complain(fmt::format("`{}` of {} is {}", name, description_.kind, text_of(sizes)),
           "write sizes above 0");
  return otherwise.value_or(Shape{});
}

std::vector<int64_t> ArgumentReader::sizes(std::string_view name,
                                           std::optional<int64_t> otherwise) {
  const Argument* value = take(name);
  if (value == nullptr) {
    return {missing(name, otherwise, "an integer")};
  }
  if (const auto* integer = std::get_if<int64_t>(value)) {
    return {in_range(name, *integer)};
  }
  if (const auto* list = std::get_if<std::vector<int64_t>>(value)) {
    std::vector<int64_t> all;
    for (const int64_t size : *list) {
      all.push_back(in_range(name, size));
    }
    return all;
  }
  wrong_type(name, "an integer");
  return {otherwise.value_or(1)};
}

Time ArgumentReader::time(std::string_view name) {
  const Argument* value = take(name);
  if (value != nullptr && std::holds_alternative<Time>(*value)) {
    return std::get<Time>(*value);
  }
  const bool zero = value != nullptr && *value == Argument(int64_t{0});
  if (value != nullptr && !zero) {
    wrong_type(name, "a time such as `3 ms`");
  }
  return Time(0);
}

Bytes ArgumentReader::bytes(std::string_view name) {
  const Argument* value = take(name);
  if (value != nullptr && std::holds_alternative<Bytes>(*value)) {
    return std::get<Bytes>(*value);
  }
  const bool zero = value != nullptr && *value == Argument(int64_t{0});
  if (value != nullptr && !zero) {
    wrong_type(name, "a size such as `4 MiB`");
  }
  return Bytes(0);
}

void ArgumentReader::complain(std::string message, std::string remedy) {
  errors_.push_back(
      {.message = std::move(message), .remedy = std::move(remedy), .source = description_.source});
}

void ArgumentReader::lack(std::string message, std::string remedy) {
  complain(std::move(message), std::move(remedy));
  errors_.back().is_unmodelled = true;
}

void ArgumentReader::only(std::string_view name, const Argument& modelled) {
  const Argument* value = take(name);
  if (value == nullptr || *value == modelled) {
    return;
  }
  const auto* whole = std::get_if<int64_t>(value);
  const auto* real = std::get_if<double>(&modelled);
  if (whole != nullptr && real != nullptr && static_cast<double>(*whole) == *real) {
    return;
  }
  lack(fmt::format("`{}` of {} is not modelled yet", name, description_.kind),
       fmt::format("leave `{}` out: torch's default is modelled", name));
}

void ArgumentReader::finish() {
  const std::string legal = fmt::format("{}", fmt::join(known_, ", "));
  for (size_t i = 0; i < names_.size(); ++i) {
    if (taken_[i]) {
      continue;
    }
    const std::string remedy =
        legal.empty() ? std::string("it takes none") : fmt::format("expected one of: {}", legal);
    if (names_[i].empty()) {
      complain(fmt::format("{} is given too many values", description_.kind), remedy);
    } else {
      lack(fmt::format("`{}` of {} is not modelled yet", names_[i], description_.kind), remedy);
    }
  }
}

}  // namespace lockstep
