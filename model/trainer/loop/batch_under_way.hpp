#pragma once

#include <string_view>

#include "model/trainer/data/column_cache.hpp"
#include "model/trainer/data/data_loader.hpp"

namespace lockstep {

/// The batch that one rank works on, as hooks and their columns see it. Where a strategy steps on
/// copies of the module, each copy has a part of it.
class BatchUnderWay {
 public:
  /// So many numbers of columns are kept beyond the batch. `place` is the rank's, and outlives
  /// this.
  BatchUnderWay(int64_t numbers_max, const Place& place) : columns_(numbers_max, place) {}

  /// Makes the batch available until `leave`. Both outlive that.
  void enter(const Batch& batch, const LoaderSettings& loader);
  void leave();
  bool is_there() const { return batch_ != nullptr; }
  /// Of the copy whose step runs, and of all copies.
  const Batch& batch() const { return *batch_; }
  const Batch& whole() const { return *whole_; }
  int64_t size_or(int64_t otherwise) const { return is_there() ? batch_->size() : otherwise; }

  /// The copy whose step runs, which gets a part of the batch; the part outlives `take_whole`.
  void take_part(size_t copy, const Batch& part);
  void take_whole();
  size_t copy() const { return copy_; }

  /// Gradients will be asked for.
  void set_trains(bool trains) { trains_ = trains; }
  bool trains() const { return trains_; }

  bool has_column(std::string_view name) const;
  Value column(std::string_view name);
  const SampleColumns& columns() const { return *loader_->columns; }

 private:
  const Batch* batch_ = nullptr;
  const Batch* whole_ = nullptr;
  const LoaderSettings* loader_ = nullptr;
  size_t copy_ = 0;
  bool trains_ = false;
  ColumnCache columns_;
};

}  // namespace lockstep
