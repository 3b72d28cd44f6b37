#pragma once

#include <map>
#include <vector>

#include "model/strategy/sharded/deepspeed/drive_options.hpp"
#include "model/strategy/sharded/deepspeed/swap_buffers.hpp"

namespace lockstep {

/// Parts of parameters that lie on the drive (partitioned_param_swapper.py). One is read into a
/// buffer of its own before its parameter is gathered, and has it until that is freed.
class ParameterSwapper {
 public:
  ParameterSwapper(const DriveOptions& options, DType dtype) : options_(options), dtype_(dtype) {}

  const DriveOptions& options() const { return options_; }
  /// Where a part of so many elements lies: on the drive, or in host memory where it is small.
  Slice add(Rank& rank, size_t parameter, int64_t elements);
  /// `most`: elements that the largest group of parameters takes as it is written after a step.
  void allocate(Rank& rank, int64_t most);

  bool is_swapped(size_t parameter) const { return stored_.contains(parameter); }
  bool is_away(size_t parameter) const {
    return is_swapped(parameter) && !present_.contains(parameter);
  }
  size_t free_buffers() const { return buffers_.free(); }
  /// Begins to read those of the parameters that are away.
  void bring(Rank& rank, const std::vector<size_t>& parameters, SiteId site);
  struct Present {
    size_t buffer = 0;
    Slice part;
    Ticket read;
  };
  const Present& present(size_t parameter) const { return present_.at(parameter); }
  /// `used`: what has used the buffer last. Nothing where the parameter has none.
  void give(size_t parameter, Ticket used);

  /// Updated parts on their way to the drive.
  struct Updated {
    size_t parameter = 0;
    Slice through;
  };
  /// The place of the next one, behind those that are there.
  Slice through(const std::vector<Updated>& before, int64_t elements) const;
  /// The host goes on when they are written.
  void write(Rank& rank, const std::vector<Updated>& updated, SiteId site);

 private:
  int64_t stored(int64_t elements) const { return options_.aligned(elements, dtype_); }

  DriveOptions options_;
  DType dtype_;
  std::map<size_t, Slice> stored_;  ///< by parameter, rounded up
  std::map<size_t, Present> present_;
  SwapBuffers buffers_;
  Slice on_the_way_;
};

}  // namespace lockstep
