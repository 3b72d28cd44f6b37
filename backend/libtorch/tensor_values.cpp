#include "backend/libtorch/tensor_values.hpp"

#include <ATen/ops/from_blob.h>

#include <cstring>
#include <memory>

namespace lockstep::backend {

at::ScalarType scalar_type_of(DType dtype) {
  switch (dtype) {
    case DType::fp64: return at::kDouble;
    case DType::fp32: return at::kFloat;
    case DType::bf16: return at::kBFloat16;
    case DType::fp16: return at::kHalf;
    case DType::int64: return at::kLong;
    case DType::int32: return at::kInt;
    case DType::uint8: return at::kByte;
  }
  return at::kFloat;
}

at::Tensor tensor_of(Values values) {
  const int64_t elements = values.size();
  const auto owner = std::make_shared<Values>(std::move(values));
  return at::from_blob(
      owner->bytes().data(), {elements}, [owner](void*) {},
      at::TensorOptions(scalar_type_of(owner->dtype())));
}

Values values_of(const at::Tensor& tensor, DType dtype) {
  const at::Tensor rounded = tensor.detach().to(scalar_type_of(dtype)).contiguous();
  Values values(dtype, rounded.numel());
  if (!values.empty()) {
    std::memcpy(values.bytes().data(), rounded.const_data_ptr(), values.bytes().size());
  }
  return values;
}

}  // namespace lockstep::backend
