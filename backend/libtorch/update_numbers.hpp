#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace lockstep::backend {

/// What an update is written in (model/network/optimizer/update_numbers.hpp), as torch's own calls:
/// each function is one of them, in place.
class TensorNumbers {
 public:
  explicit TensorNumbers(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  const at::Tensor& tensor() const { return tensor_; }
  int64_t elements() const { return tensor_.numel(); }

  TensorNumbers clone() const { return TensorNumbers(tensor_.clone()); }
  void copy(const TensorNumbers& other) { tensor_.copy_(other.tensor_); }
  void negate() { tensor_.neg_(); }
  void scale(double factor) { tensor_.mul_(factor); }
  void divide(double by) { tensor_.div_(by); }
  void divide_into(double number) { tensor_ = number / tensor_; }
  void raise(double term) { tensor_.add_(term); }
  void root() { tensor_.sqrt_(); }
  void inverse_root() { tensor_.rsqrt_(); }
  void absolute() { tensor_.abs_(); }
  void sign() { tensor_.sign_(); }
  void keep_above(double least) { tensor_.clamp_min_(least); }
  void keep_below(double most) { tensor_.clamp_max_(most); }
  void add(const TensorNumbers& a, double factor = 1) { tensor_.add_(a.tensor_, factor); }
  void multiply(const TensorNumbers& a) { tensor_.mul_(a.tensor_); }
  void divide(const TensorNumbers& a) { tensor_.div_(a.tensor_); }
  void keep_larger(const TensorNumbers& a) { at::maximum_out(tensor_, tensor_, a.tensor_); }
  void approach(const TensorNumbers& end, double weight) { tensor_.lerp_(end.tensor_, weight); }
  void choose_by_sign(double positive, double negative, double zero) {
    const at::Tensor below = tensor_.lt(0);
    const at::Tensor nothing = tensor_.eq(0);
    tensor_.fill_(positive).masked_fill_(below, negative).masked_fill_(nothing, zero);
  }
  void drop_where(const TensorNumbers& other, double number) {
    tensor_.masked_fill_(other.tensor_.eq(number), 0);
  }
  void add_product(const TensorNumbers& a, const TensorNumbers& b, double factor) {
    tensor_.addcmul_(a.tensor_, b.tensor_, factor);
  }
  void add_quotient(const TensorNumbers& a, const TensorNumbers& b, double factor) {
    tensor_.addcdiv_(a.tensor_, b.tensor_, factor);
  }
  // Of matrices one after the other.
  TensorNumbers mean_squares(int64_t rows, int64_t columns, bool of_rows) const {
    const at::Tensor matrices = tensor_.view({-1, rows, columns});
    return TensorNumbers(matrices.norm(2, {of_rows ? 2 : 1}, /*keepdim=*/false)
                             .square_()
                             .div_(of_rows ? columns : rows)
                             .flatten());
  }
  static TensorNumbers scaled_product(const TensorNumbers& column, const TensorNumbers& row,
                                      int64_t rows, int64_t columns, double least) {
    const at::Tensor down = column.tensor_.view({-1, rows, 1});
    const at::Tensor across = row.tensor_.view({-1, 1, columns});
    const at::Tensor mean = down.mean(1, /*keepdim=*/true).clamp_min_(least);
    return TensorNumbers(at::matmul(down, across).div_(mean).flatten());
  }
  double epsilon() const {
    switch (tensor_.scalar_type()) {
      case at::kDouble: return 0x1p-52;
      case at::kBFloat16: return 0x1p-7;
      case at::kHalf: return 0x1p-10;
      default: return 0x1p-23;
    }
  }
  double norm() const { return tensor_.norm(2).item<double>(); }

 private:
  at::Tensor tensor_;
};

}  // namespace lockstep::backend
