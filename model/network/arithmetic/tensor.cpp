#include "model/network/arithmetic/tensor.hpp"

#include <algorithm>
#include <cstddef>

#include "model/core/ensure.hpp"

namespace lockstep {

void add(const Values& a, const Values& b, Values& output) {
  ensure(a.size() == b.size() && a.size() == output.size(), "a sum's operands fit");
  ensure(a.dtype() == b.dtype(), "a sum's operands are of one type");
  Values sum = a;
  accumulate(Reduction::sum, sum, b);
  cast(sum, output);
}

void cast(const Values& input, Values& output) {
  ensure(input.size() == output.size(), "a cast keeps the size");
  if (input.dtype() == output.dtype()) {
    output = input;
    return;
  }
  for (int64_t i = 0; i < input.size(); ++i) {
    if (is_floating(input.dtype()) || is_floating(output.dtype())) {
      output.set(i, input.number(i));
    } else {
      output.set_integer(i, input.integer(i));
    }
  }
}

void copy(const Values& source, Values& destination) {
  ensure(source.size() == destination.size(), "a copy keeps the size");
  destination.assign(0, source);
}

void pack(std::span<const Values* const> parts, Values& flat) {
  int64_t begin = 0;
  for (const Values* part : parts) {
    flat.assign(begin, *part);
    begin += part->size();
  }
  const auto padding = flat.bytes().subspan(static_cast<size_t>(begin * size_of(flat.dtype())));
  std::fill(padding.begin(), padding.end(), std::byte{0});
}

void unpack(const Values& flat, std::span<Values* const> parts) {
  int64_t begin = 0;
  for (Values* part : parts) {
    part->assign(0, flat.slice(begin, part->size()));
    begin += part->size();
  }
}

}  // namespace lockstep
