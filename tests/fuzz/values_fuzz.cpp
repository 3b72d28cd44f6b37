#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "model/core/ensure.hpp"
#include "model/core/values.hpp"

using namespace lockstep;

namespace {

constexpr DType dtypes[] = {DType::fp64, DType::fp32,  DType::bf16,
                            DType::fp16, DType::int64, DType::uint8};

Values values_from(DType dtype, std::span<const uint8_t> bytes) {
  Values values(dtype, static_cast<int64_t>(bytes.size()) / size_of(dtype));
  if (!values.empty()) {
    std::memcpy(values.bytes().data(), bytes.data(), values.bytes().size());
  }
  return values;
}

// What is read from a type and stored to it again is the same, bit for bit (a NaN stays a NaN).
void read_and_store(const Values& values) {
  Values copy(values.dtype(), values.size());
  for (int64_t i = 0; i < values.size(); ++i) {
    if (values.dtype() == DType::int64) {
      copy.set_integer(i, values.integer(i));
    } else {
      copy.set(i, values.number(i));
    }
    const bool both_nan = std::isnan(values.number(i)) && std::isnan(copy.number(i));
    ensure(both_nan || values.slice(i, 1) == copy.slice(i, 1), "a stored number reads the same");
  }
}

void name_and_find(DType dtype) {
  ensure(dtype_named(name_of(dtype)) == dtype, "a dtype is found by its name");
}

void reduce_all_ways(const Values& values) {
  const Values* contributions[] = {&values, &values, &values};
  for (const Reduction reduction :
       {Reduction::sum, Reduction::avg, Reduction::product, Reduction::min, Reduction::max}) {
    for (const AverageOrder order : {AverageOrder::scale_then_sum, AverageOrder::sum_then_divide}) {
      const Values result = reduce(reduction, order, contributions);
      ensure(result.dtype() == values.dtype() && result.size() == values.size(),
             "a reduction keeps type and size");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const DType dtype = dtypes[data[0] % std::size(dtypes)];
  const Values values = values_from(dtype, std::span(data + 1, size - 1));
  name_and_find(dtype);
  read_and_store(values);
  reduce_all_ways(values);
  return 0;
}
