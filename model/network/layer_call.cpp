#include "model/network/layer_call.hpp"

#include <algorithm>

#include "model/network/arithmetic/tensor.hpp"

namespace lockstep {

namespace {

Values in_type(const Values& values, DType dtype) {
  if (!is_floating(values.dtype()) || values.dtype() == dtype) {
    return values;
  }
  Values result(dtype, values.size());
  cast(values, result);
  return result;
}

}  // namespace

LayerCall::LayerCall(const Op& op, Operands& operands) : lists_(op.list()), operands_(operands) {
  for (const Slice& slice : lists_.reads) {
    reads_.push_back(operands.load(slice));
  }
  for (const Slice& slice : lists_.writes) {
    writes_.push_back(slice.elements == 0 ? Values() : operands.load(slice));
  }
}

bool LayerCall::valued() const {
  return !reads_.empty() && !reads_.front().empty() && !writes_.empty() &&
         std::none_of(reads_.begin(), reads_.end(), [](const Values& v) { return v.empty(); });
}

void LayerCall::write_cast(size_t index, const Values& values) {
  writes_.at(index) = in_type(values, lists_.writes[index].dtype);
}

void LayerCall::narrow(DType dtype) {
  for (Values& values : reads_) {
    values = in_type(values, dtype);
  }
  held_ = std::move(writes_);
  writes_.clear();
  for (const Values& values : held_) {
    const DType narrowed = is_floating(values.dtype()) ? dtype : values.dtype();
    writes_.push_back(values.empty() ? Values() : Values(narrowed, values.size()));
  }
}

void LayerCall::store() {
  for (size_t i = 0; i < writes_.size(); ++i) {
    if (writes_[i].empty()) {
      continue;
    }
    if (held_.empty()) {
      operands_.store(lists_.writes[i], writes_[i]);
    } else if (i == 0) {
      operands_.store(lists_.writes[i], in_type(writes_[i], lists_.writes[i].dtype));
    } else {
      accumulate(Reduction::sum, held_[i], writes_[i]);
      operands_.store(lists_.writes[i], held_[i]);
    }
  }
}

}  // namespace lockstep
