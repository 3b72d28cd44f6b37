#include "model/trainer/prepare/object_arguments.hpp"

namespace lockstep {

const PlainValue* ObjectArguments::find(std::string_view name, size_t position) const {
  const PlainValue* const value =
      position == none ? object_.find(name) : object_.find(name, position);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<bool> ObjectArguments::optional_boolean(std::string_view name) const {
  const PlainValue* const value = find(name);
  const bool* const given = value == nullptr ? nullptr : value->get_if<bool>();
  return given == nullptr ? std::nullopt : std::optional(*given);
}

std::optional<int64_t> ObjectArguments::optional_integer(std::string_view name) const {
  const PlainValue* const value = find(name);
  const int64_t* const given = value == nullptr ? nullptr : value->get_if<int64_t>();
  return given == nullptr ? std::nullopt : std::optional(*given);
}

std::optional<double> ObjectArguments::optional_number(std::string_view name) const {
  const PlainValue* const value = find(name);
  return value == nullptr ? std::nullopt : value->number();
}

bool ObjectArguments::boolean(std::string_view name, bool otherwise) const {
  return optional_boolean(name).value_or(otherwise);
}

int64_t ObjectArguments::integer(std::string_view name, int64_t otherwise, size_t position) const {
  const PlainValue* const value = find(name, position);
  const int64_t* const given = value == nullptr ? nullptr : value->get_if<int64_t>();
  return given == nullptr ? otherwise : *given;
}

double ObjectArguments::number(std::string_view name, double otherwise, size_t position) const {
  const PlainValue* const value = find(name, position);
  return value == nullptr ? otherwise : value->number().value_or(otherwise);
}

std::string ObjectArguments::text(std::string_view name, const std::string& otherwise,
                                  size_t position) const {
  const PlainValue* const value = find(name, position);
  const std::string* const given = value == nullptr ? nullptr : value->get_if<std::string>();
  return given == nullptr ? otherwise : *given;
}

}  // namespace lockstep
