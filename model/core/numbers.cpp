#include "model/core/numbers.hpp"

#include <cstring>
#include <type_traits>

namespace lockstep {

namespace {

// Calls `use` with each stored element, in order.
template <class Stored, class Use>
void for_each_stored(std::span<const std::byte> bytes, Use use) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(Stored)) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + at, sizeof(Stored));
    use(stored);
  }
}

template <class T, class Number>
T converted(Number number) {
  if constexpr (std::is_same_v<T, int64_t> && std::is_floating_point_v<Number>) {
    return whole_number(number);
  } else {
    return static_cast<T>(number);
  }
}

}  // namespace

template <class T>
std::vector<T> numbers_of(const Values& values) {
  std::vector<T> numbers(static_cast<size_t>(values.size()));
  auto next = numbers.begin();
  const auto put = [&next](auto number) { *next++ = converted<T>(number); };
  switch (values.dtype()) {
    case DType::fp64: for_each_stored<double>(values.bytes(), put); break;
    case DType::fp32: for_each_stored<float>(values.bytes(), put); break;
    case DType::bf16:
      for_each_stored<uint16_t>(values.bytes(), [&](uint16_t b) { put(float_from_bf16(b)); });
      break;
    case DType::fp16:
      for_each_stored<uint16_t>(values.bytes(), [&](uint16_t b) { put(float_from_fp16(b)); });
      break;
    case DType::int64: for_each_stored<int64_t>(values.bytes(), put); break;
    case DType::int32: for_each_stored<int32_t>(values.bytes(), put); break;
    case DType::uint8: for_each_stored<uint8_t>(values.bytes(), put); break;
  }
  return numbers;
}

template std::vector<float> numbers_of<float>(const Values&);
template std::vector<double> numbers_of<double>(const Values&);
template std::vector<int64_t> numbers_of<int64_t>(const Values&);

}  // namespace lockstep
