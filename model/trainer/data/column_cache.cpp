#include "model/trainer/data/column_cache.hpp"

namespace lockstep {

Value ColumnCache::values(const SampleColumns& columns, std::string_view column, const Batch& batch,
                          bool returns) {
  const auto known = of_batch_.find(column);
  if (known != of_batch_.end()) {
    return known->second;
  }
  const int64_t first = batch.samples.empty() ? -1 : batch.samples.front();
  Key key{&columns, std::string(column), first};
  const auto kept = returns ? kept_.find(key) : kept_.end();
  if (kept != kept_.end() && kept->second.samples == batch.samples) {
    return of_batch_.emplace(column, kept->second.value).first->second;
  }
  Value value = columns.values(column, batch.samples, place_);
  const int64_t numbers = value.tensor().values.size();
  if (returns && kept == kept_.end() && numbers_ + numbers <= numbers_max_) {
    numbers_ += numbers;
    kept_.emplace(std::move(key), Kept{batch.samples, value});
  }
  return of_batch_.emplace(column, std::move(value)).first->second;
}

}  // namespace lockstep
