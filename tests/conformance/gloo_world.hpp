#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

#include "backend/gloo/world.hpp"
#include "model/core/ensure.hpp"

namespace lockstep::backend {

inline RunOptions world_of(int32_t ranks) {
  RunOptions options;
  options.world_size = ranks;
  options.any_source = true;
  return options;
}

inline GlooOptions ends_after(std::chrono::milliseconds deadline, Fleet* fleet = nullptr) {
  GlooOptions gloo;
  gloo.deadline = deadline;
  gloo.fleet = fleet;
  return gloo;
}

inline Slice metric(Rank& rank, DType dtype, std::initializer_list<double> numbers) {
  const Slice slice = rank.allocate(Purpose::metric, dtype, static_cast<int64_t>(numbers.size()));
  rank.write(slice, Values::of(dtype, numbers));
  return slice;
}

/// The numbers that each rank noted, by rank; each rank's thread touches only its own entry.
using Notes = std::vector<std::vector<double>>;

inline void note(Notes& notes, Rank& rank, const Values& values) {
  for (int64_t i = 0; i < values.size(); ++i) {
    notes[static_cast<size_t>(rank.id())].push_back(values.number(i));
  }
}

inline int64_t entries_of(const char* folder) {
  int64_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++count;
  }
  return count;
}

}  // namespace lockstep::backend
