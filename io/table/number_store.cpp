#include "io/table/number_store.hpp"

#include <algorithm>

namespace lockstep {

namespace {
// A window over the rows that are asked for may hold this many others for each of them.
constexpr int64_t rows_beside = 64;
constexpr size_t rows_at_once = 1024;
constexpr int64_t window_numbers_max = int64_t{1} << 17;
}  // namespace

void NumberStore::set_width(size_t columns) { width_ = columns; }

// Blocks lie behind each other, so that row r begins at r * width numbers.
bool NumberStore::save_block() {
  if (!store_) {
    store_ = std::make_unique<TemporaryStore>();
  }
  if (!store_->save(std::as_bytes(std::span(held_)))) {
    return false;
  }
  rows_saved_ = rows_;
  held_.clear();
  return true;
}

bool NumberStore::append(std::span<const double> row) {
  held_.insert(held_.end(), row.begin(), row.end());
  ++rows_;
  return held_.size() + width_ <= numbers_in_memory || save_block();
}

bool NumberStore::finish() {
  const bool saved = !store_ || held_.empty() || save_block();
  held_.shrink_to_fit();
  return saved;
}

void NumberStore::read_window(int64_t first, int64_t count, std::vector<double>& numbers) const {
  numbers.resize(static_cast<size_t>(count) * width_);
  const std::lock_guard<std::mutex> lock(reading_);
  store_->load(static_cast<uint64_t>(first) * width_ * sizeof(double),
               std::as_writable_bytes(std::span(numbers)));
}

void NumberStore::read(size_t column, std::span<const int64_t> rows, std::span<double> out) const {
  if (rows.empty()) {
    return;
  }
  if (!store_) {
    for (size_t i = 0; i < rows.size(); ++i) {
      out[i] = held_[static_cast<size_t>(rows[i]) * width_ + column];
    }
    return;
  }
  std::vector<double> numbers;
  for (size_t begin = 0; begin < rows.size(); begin += rows_at_once) {
    const size_t count = std::min(rows_at_once, rows.size() - begin);
    read_some(column, rows.subspan(begin, count), out.subspan(begin, count), numbers);
  }
}

void NumberStore::read_some(size_t column, std::span<const int64_t> rows, std::span<double> out,
                            std::vector<double>& numbers) const {
  const auto [least, greatest] = std::minmax_element(rows.begin(), rows.end());
  const int64_t window = *greatest - *least + 1;
  const bool near = window <= rows_beside * static_cast<int64_t>(rows.size()) &&
                    window * static_cast<int64_t>(width_) <= window_numbers_max;
  if (near) {
    read_window(*least, window, numbers);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!near) {
      read_window(rows[i], 1, numbers);
    }
    out[i] = numbers[static_cast<size_t>(near ? rows[i] - *least : 0) * width_ + column];
  }
}

}  // namespace lockstep
