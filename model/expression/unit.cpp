#include "model/expression/unit.hpp"

#include <fmt/format.h>

namespace lockstep {

std::string_view name_of(QuantityKind kind) {
  switch (kind) {
    case QuantityKind::time: return "time";
    case QuantityKind::bytes: return "bytes";
    case QuantityKind::rate: return "rate";
    case QuantityKind::flops: return "flops";
    case QuantityKind::flops_rate: return "flops per second";
  }
  return "?";
}

const Unit* find_unit(std::string_view name) {
  for (const Unit& candidate : units) {
    if (candidate.name == name) {
      return &candidate;
    }
  }
  return nullptr;
}

namespace {

// Flops have no unit of one flop, so a count that is no whole number of MFLOP has six decimals.
std::string in_millions(int64_t count, std::string_view name) {
  const int64_t fraction = count % 1'000'000;
  std::string digits = fmt::format("{:06}", fraction < 0 ? -fraction : fraction);
  digits.erase(digits.find_last_not_of('0') + 1);
  return fmt::format("{}{}.{} {}", count < 0 ? "-" : "",
                     fmt::to_string(count / 1'000'000).substr(count / 1'000'000 < 0 ? 1 : 0),
                     digits, name);
}

}  // namespace

std::string text_of(AnyQuantity quantity) {
  const Unit* best = nullptr;
  const Unit* smallest = nullptr;
  for (const Unit& candidate : units) {
    if (candidate.kind != quantity.kind) {
      continue;
    }
    smallest = smallest == nullptr ? &candidate : smallest;
    if (quantity.count % candidate.factor == 0 &&
        (best == nullptr || (quantity.count != 0 && candidate.factor > best->factor))) {
      best = &candidate;
    }
  }
  if (best == nullptr) {
    return in_millions(quantity.count, smallest->name);
  }
  return fmt::format("{} {}", static_cast<int64_t>(quantity.count / best->factor), best->name);
}

}  // namespace lockstep
