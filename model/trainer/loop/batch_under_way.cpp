#include "model/trainer/loop/batch_under_way.hpp"

namespace lockstep {

void BatchUnderWay::enter(const Batch& batch, const LoaderSettings& loader) {
  batch_ = whole_ = &batch;
  columns_.begin_batch();
  loader_ = &loader;
}

void BatchUnderWay::leave() {
  batch_ = whole_ = nullptr;
  loader_ = nullptr;
}

void BatchUnderWay::take_part(size_t copy, const Batch& part) {
  copy_ = copy;
  batch_ = &part;
  columns_.begin_batch();
}

void BatchUnderWay::take_whole() {
  copy_ = 0;
  batch_ = whole_;
  columns_.begin_batch();
}

bool BatchUnderWay::has_column(std::string_view name) const {
  return loader_ != nullptr && loader_->columns->has(name);
}

Value BatchUnderWay::column(std::string_view name) {
  return columns_.values(*loader_->columns, name, *batch_, !trains_);
}

}  // namespace lockstep
